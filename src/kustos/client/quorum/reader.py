"""Reads the committed state of a KRaft quorum on demand, without a copy on disk.

This is for tools; a node follows the quorum instead (`kustos.client.quorum.follower`).
"""

import asyncio
from typing import Final

from kustos.client.errors import ClientError, KafkaError, RequestTimedOutError
from kustos.client.quorum.follower import FETCH_SNAPSHOT_VERSION, RETRY_FIRST_MS, QuorumConnection
from kustos.client.settings import ClientSettings
from kustos.metadata.image import MetadataImage
from kustos.metadata.quorum import (
    FETCH_VERSIONS,
    CaughtUp,
    Committed,
    CommittedImage,
    CommittedLostError,
    Effect,
    FollowerMachine,
    ForeignAnswerError,
    SnapshotFetched,
)
from kustos.runtime import Entropy
from kustos.wire import ApiKey


class QuorumReader:
    """Queries the controllers behind the bootstrap servers; needs CLUSTER_ACTION on the cluster."""

    def __init__(self, settings: ClientSettings, entropy: Entropy) -> None:
        self._settings: Final = settings
        self._connection: Final = QuorumConnection(settings, entropy)
        self._begin()

    def _begin(self) -> None:
        self._machine = FollowerMachine(None)
        self._committed = CommittedImage()

    async def catch_up(self) -> MetadataImage:
        """Return the current committed state.

        Raises the last controller's `ClientError`, or `RequestTimedOutError`, if none answers within
        `request_timeout_ms`; `MetadataError` for a log that cannot be applied.
        """
        loop = asyncio.get_running_loop()
        patience_s = self._settings.limits.request_timeout_ms / 1000
        last_help_s = loop.time()
        while True:
            reason: ClientError | None = None
            try:
                effects = await self._ask()
            except (ClientError, ForeignAnswerError) as error:
                self._connection.drop()
                self._machine.lost()
                effects = ()
                reason = error if isinstance(error, ClientError) else ClientError(str(error))
            if self._perform(effects):
                return self._committed.image
            if not self._machine.setbacks:
                last_help_s = loop.time()
                continue
            if self._machine.last_error:
                reason = KafkaError(self._machine.last_error)
                if reason.is_authorization_failure:
                    raise reason
            if loop.time() - last_help_s > patience_s:
                raise reason or RequestTimedOutError("no controller of the quorum leads it")
            await asyncio.sleep(RETRY_FIRST_MS / 1000)

    async def _ask(self) -> tuple[Effect, ...]:
        machine = self._machine
        connection, address = await self._connection.to(machine.leader)
        version = connection.choose_version(ApiKey.FETCH, FETCH_VERSIONS[1], FETCH_VERSIONS[0])
        is_copying = machine.asks_for_snapshot
        question = machine.question(version, max_wait_ms=0)
        answer = await connection.send(
            question.api_key,
            FETCH_SNAPSHOT_VERSION if is_copying else version,
            question.message,
            timeout_ms=self._settings.limits.request_timeout_ms,
        )
        try:
            return machine.receive(answer, address)
        except CommittedLostError:
            # the quorum lost its log, or is another quorum now: read it from the beginning
            self._begin()
            return ()

    def _perform(self, effects: tuple[Effect, ...]) -> bool:
        """Apply the effects; return whether everything committed has been read."""
        for effect in effects:
            match effect:
                case Committed():
                    self._committed.apply(effect)
                case SnapshotFetched():
                    self._committed.replace(effect)
                case CaughtUp():
                    return True
        return False

    def close(self) -> None:
        """Close the connection."""
        self._connection.drop()
