"""Where commands read and write ACLs: files in any form, standard streams, metadata, a running cluster.

All that can be read returns one `LoadedAcls`, with the broker settings that affect decisions if the caller
requests them. A file is rejected as a whole if any part of it cannot be parsed.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from kustos.acl import EVERY_BINDING, AclBinding, AclBindingFilter
from kustos.acl.forms import (
    FILE_BYTES_MAX,
    AclForm,
    LocatedBinding,
    detect_form,
    form_of_name,
    read_acls,
    write_acls,
)
from kustos.cli.acl_options import AclFormName
from kustos.cli.broker_settings import NAMES, BrokerSettings, SettingOptions, of_cluster, of_log
from kustos.cli.failures import usage_error
from kustos.cli.terminal import progress
from kustos.metadata import METADATA_SUFFIXES
from kustos.runtime import FileSystemStorage, TextFileError, read_text_file, read_text_stream, reason_of

if TYPE_CHECKING:
    from kustos.client.admin import AdminClient
    from kustos.metadata.inspection import Moment, StateAt

STANDARD_INPUT: Final = "-"
CLUSTER_SCHEME: Final = "kafka://"
NO_SETTINGS: Final = BrokerSettings(unknown="a file of ACLs does not hold them")


@dataclass(frozen=True, slots=True)
class LoadedAcls:
    """ACLs in the order read, duplicates included.

    `name`: the name of the source for messages. `path`: the file of the line numbers, None without lines
    (then 0). `settings`: the known broker settings.
    """

    name: str
    located: tuple[LocatedBinding, ...]
    path: str | None = None
    settings: BrokerSettings = NO_SETTINGS

    @property
    def bindings(self) -> list[AclBinding]:
        """The ACLs without duplicates."""
        return list(dict.fromkeys([each.binding for each in self.located]))

    def judged_by(self, options: SettingOptions) -> "LoadedAcls":
        """Return the same ACLs with settings completed from the options."""
        return replace(self, settings=options.complete(self.settings))


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSource:
    """The parsed options for where ACLs are and how to read them."""

    acls: str | None = None
    form: AclFormName | None = None
    metadata_dir: Path | None = None
    at: str | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    ignore_torn_tail: bool = False
    settings: SettingOptions | None = None
    """Broker settings from the options; None if the command does not need them."""

    def load(self, binding_filter: AclBindingFilter = EVERY_BINDING) -> LoadedAcls:
        """Return the ACLs; from a cluster only those that match the filter. Raises the errors of reading."""
        loaded = self._load(binding_filter)
        return loaded if self.settings is None else loaded.judged_by(self.settings)

    def _load(self, binding_filter: AclBindingFilter) -> LoadedAcls:
        sources = [each for each in (self.acls, self.metadata_dir, self.bootstrap_server) if each is not None]
        if len(sources) != 1:
            raise usage_error(
                "say where the ACLs are: `--acls`, `--metadata-dir` or `--bootstrap-server`, one of them"
            )
        if self.at is not None and self.metadata_dir is None:
            raise usage_error("`--at` looks back in a metadata log: give `--metadata-dir` too")
        if self.acls is not None:
            return read_acl_file(self.acls, self.form, ignore_torn_tail=self.ignore_torn_tail)
        if self.metadata_dir is not None:
            return _read_metadata(self.metadata_dir, self.at, ignore_torn_tail=self.ignore_torn_tail)
        return _read_cluster(self.bootstrap_server or "", self.command_config, binding_filter, self.settings)


def read_location(
    text: str,
    form: AclFormName | None,
    command_config: Path | None,
    at: str | None = None,
    *,
    ignore_torn_tail: bool = False,
    settings: SettingOptions | None = None,
) -> LoadedAcls:
    """Return the ACLs of a file, of a directory, of `-`, or of the cluster at `kafka://host:port`.

    `at` requires a directory and returns its ACLs at that moment. `settings` are broker settings from the
    options, None if the caller does not need them.
    """
    loaded = _read_location(text, form, command_config, at, ignore_torn_tail, settings)
    return loaded if settings is None else loaded.judged_by(settings)


def _read_location(
    text: str,
    form: AclFormName | None,
    command_config: Path | None,
    at: str | None,
    ignore_torn_tail: bool,
    settings: SettingOptions | None,
) -> LoadedAcls:
    if at is not None:
        if not Path(text).is_dir():
            raise usage_error(f"`--at` looks back in a metadata log, but `{text}` is not a directory")
        return _read_metadata(Path(text), at, ignore_torn_tail=ignore_torn_tail)
    if text.startswith(CLUSTER_SCHEME):
        return _read_cluster(text.removeprefix(CLUSTER_SCHEME), command_config, EVERY_BINDING, settings)
    return read_acl_file(text, form, ignore_torn_tail=ignore_torn_tail)


def read_acl_file(
    name: str, form: AclFormName | None = None, *, ignore_torn_tail: bool = False
) -> LoadedAcls:
    """Return the ACLs of a file, `-` for standard input; a directory is read as metadata.

    Raises a usage error for an unreadable file, `AclFormatError` or `MetadataError` for other content.
    """
    path = Path(name)
    if name != STANDARD_INPUT:
        is_metadata = path.is_dir() or (form is None and path.suffix in METADATA_SUFFIXES)
        if is_metadata or form is AclFormName.METADATA:
            return _read_metadata(path, ignore_torn_tail=ignore_torn_tail)
    elif form is AclFormName.METADATA:
        raise usage_error("metadata cannot come from standard input, name its file or directory")
    called = called_name(name)
    with progress(f"reading {called}"):
        text = read_text(name)
        known = detect_form(text, called) if form is None else AclForm(form.value)
        return LoadedAcls(called, tuple(read_acls(text, known, called)), called)


def called_name(name: str) -> str:
    """Return the name of a file, or of standard input, for messages."""
    return "standard input" if name == STANDARD_INPUT else name


def read_text(name: str) -> str:
    """Return the text of a file, `-` for standard input; raise a usage error if it cannot be read."""
    try:
        if name == STANDARD_INPUT:
            return read_text_stream(sys.stdin.buffer, FILE_BYTES_MAX, called_name(name))
        return read_text_file(Path(name), FILE_BYTES_MAX)
    except OSError as error:
        raise usage_error(f"cannot read `{called_name(name)}`: {reason_of(error)}") from error
    except TextFileError as error:
        raise usage_error(str(error)) from error


def _read_metadata(path: Path, at: str | None = None, *, ignore_torn_tail: bool) -> LoadedAcls:
    from kustos.metadata.directory import logged_settings, read_metadata

    name = str(path) if at is None else f"{path} at {at}"
    if at is not None:
        image = state_at(path, at, ignore_torn_tail=ignore_torn_tail).image
    else:
        with progress(f"reading {path}"):
            image = read_metadata(path, ignore_torn_tail=ignore_torn_tail)
    settings = of_log(path, logged_settings(path, image, NAMES))
    return _of_bindings(name, list(image.acls.values()), settings)


def state_at(path: Path, at: str, *, ignore_torn_tail: bool) -> "StateAt":
    """Return the state of a metadata directory at a moment, and report that moment on standard error.

    Raises a usage error for a text that is not a moment, and the errors of `Timeline`.
    """
    from kustos.metadata.inspection import Timeline

    moment = moment_of(at)
    with progress(f"reading {path}"):
        timeline = Timeline(path, FileSystemStorage(), ignore_torn_tail=ignore_torn_tail)
        state = timeline.state_at(moment)
    sys.stderr.write(f"as of {state.text}\n")
    return state


def moment_of(at: str) -> "Moment":
    """Return the moment that `--at` names; raise a usage error if it names none."""
    from kustos.metadata.inspection import Moment

    try:
        return Moment.parse(at.strip())
    except ValueError as error:
        raise usage_error(str(error)) from None


def _read_cluster(
    servers: str,
    command_config: Path | None,
    binding_filter: AclBindingFilter,
    options: SettingOptions | None,
) -> LoadedAcls:
    from kustos.cli.session import query_cluster

    async def read(admin: "AdminClient") -> LoadedAcls:
        bindings = await admin.describe_acls(binding_filter)
        wants_settings = options is not None and not options.has_both
        settings = await of_cluster(admin, servers) if wants_settings else NO_SETTINGS
        return _of_bindings(f"the cluster at {servers}", bindings, settings)

    return query_cluster(servers, command_config, read, "reading ACLs")


def _of_bindings(name: str, bindings: Sequence[AclBinding], settings: BrokerSettings) -> LoadedAcls:
    from kustos.cli.acls.arguments import sorted_bindings

    located = tuple([LocatedBinding(binding, 0) for binding in sorted_bindings(bindings)])
    return LoadedAcls(name, located, settings=settings)


@dataclass(frozen=True, slots=True)
class AclTarget:
    """A file (standard output if `path` is None) and the form to write."""

    path: Path | None
    form: AclFormName

    @classmethod
    def of(cls, target: str, form: AclFormName | None, *, force: bool) -> Self:
        """Return the target of the arguments, before any work; raise a usage error if it is unusable."""
        path = None if target == STANDARD_INPUT else Path(target)
        if path is not None and path.exists() and not force:
            raise usage_error(f"`{target}` exists already, choose another target or give `--force`")
        inferred = None if path is None else form_of_name(target)
        if form is not None:
            return cls(path, form)
        if path is not None and path.suffix in METADATA_SUFFIXES:
            return cls(path, AclFormName.METADATA)
        if inferred is None:
            raise usage_error("the target's name has no extension of a known form, give `--to`")
        return cls(path, AclFormName(inferred.value))

    def write(self, bindings: Sequence[AclBinding]) -> None:
        """Write the ACLs, all or nothing; raise `AclFormatError` for one that the form cannot express."""
        with progress(f"writing {len(bindings)} ACLs"):
            if self.form is AclFormName.METADATA:
                from kustos.metadata.directory import encode_acl_snapshot

                data = encode_acl_snapshot(bindings)
            else:
                data = write_acls(bindings, AclForm(self.form.value)).encode()
            if self.path is not None:
                FileSystemStorage().write(self.path, data)
                return
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
