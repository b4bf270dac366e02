"""The candidate ACLs of a node: read from a file or a metadata directory, at the start and at each reload.

The candidate is read and compiled outside the event loop. If it cannot be loaded, the node continues to serve
without a candidate; the failure is logged, audited, counted and shown in `/ready`.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import structlog

from kustos.acl import AclBinding
from kustos.acl.forms import FILE_BYTES_MAX, detect_form, read_acls
from kustos.authorizer import CandidateAcls, SecurityEvent, SecurityEventType, SecurityResult, SharedRules
from kustos.authorizer.audit import cut
from kustos.client import one_shot
from kustos.gateway.shadow import CandidateTrial
from kustos.metadata import METADATA_SUFFIXES
from kustos.metadata.directory import read_acl_files
from kustos.runtime import read_text_file, short_switch_interval, words_of

LOG: Final = structlog.get_logger("kustos.server")

SUBJECT: Final = "CANDIDATE_ACLS"
"""The subject of events about the start of a candidate's evaluation."""


def read_candidate(path: Path) -> list[AclBinding]:
    """Return the ACLs of a file in any form, a snapshot, or a metadata directory.

    Raises `TextFileError`, `AclFormatError`, `MetadataError` or OSError. A blank file without an extension is
    refused, since it may be a mistake and would deny everything.
    """
    if path.is_dir() or path.suffix in METADATA_SUFFIXES:
        return read_acl_files(path)
    text = read_text_file(path, FILE_BYTES_MAX)
    return [located.binding for located in read_acls(text, detect_form(text, str(path)), str(path))]


class CandidateSide:
    """Loads the candidate of a node; created inside the event loop. `record` takes events for the audit log.

    `rules` returns the current super users and default, which also apply to the candidate.
    """

    def __init__(
        self,
        rules: Callable[[], SharedRules],
        record: Callable[[SecurityEvent], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.trial: Final = CandidateTrial()
        self._rules: Final = rules
        self._record: Final = record
        self._now_ms: Final = now_ms
        self._loading: asyncio.Task[None] | None = None

    def load(self, path: Path | None) -> None:
        """Start loading the candidate of this path again; None: no candidate from now on."""
        if self._loading is not None:
            self._loading.cancel()
            self._loading = None
        if path is None:
            self.trial.end()
            return
        self.trial.lack(str(path))
        self._loading = one_shot("candidate-acls", self._load(path))

    async def _load(self, path: Path) -> None:
        try:
            with short_switch_interval():
                acls = await asyncio.to_thread(lambda: CandidateAcls(read_candidate(path), self._rules))
        except Exception as error:  # noqa: BLE001 - the boundary where no fault of a candidate may matter
            reason = words_of(error) or type(error).__name__
            LOG.error("the candidate ACLs cannot be loaded, there is no candidate", reason=reason)
            self.trial.lack(str(path), reason)
            self._tell(SecurityResult.FAILURE, str(path), reason)
            return
        self.trial.put_on_trial(str(path), acls)
        LOG.info("candidate ACLs are evaluated", path=str(path), candidate=acls.id, acls=acls.acl_count)
        self._tell(SecurityResult.SUCCESS, f"candidate {acls.id}, {acls.acl_count} ACLs of {path}")

    def _tell(self, result: SecurityResult, detail: str, failure: str | None = None) -> None:
        time_ms = self._now_ms()
        self._record(
            SecurityEvent(
                event_type=SecurityEventType.SETTING_CHANGE,
                result=result,
                time_ms=time_ms,
                first_time_ms=time_ms,
                listener_name="",
                security_protocol="",
                host=None,
                failure=None if failure is None else cut(failure),
                change="RELOAD",
                subject=SUBJECT,
                detail=cut(detail),
            )
        )

    def details(self) -> Mapping[str, object]:
        """Return the state of the candidate for `/ready`; empty if there is none."""
        state = self.trial.state
        return {} if state is None else {"candidate_acls": state.details()}

    async def stop(self) -> None:
        """Stop loading."""
        loading, self._loading = self._loading, None
        if loading is not None:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
