"""Where the ACLs of a command are: files in any form, standard input, metadata, a cluster, a git revision.

Every source returns one `LoadedAcls`, with the broker settings that affect decisions if the caller requests
them. A file is rejected as a whole if any part of it cannot be parsed.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from kustos.acl import EVERY_BINDING, AclBinding, AclBindingFilter
from kustos.acl.forms import FILE_BYTES_MAX, AclForm, LocatedBinding, detect_form, read_acls
from kustos.cli.broker_settings import NAMES, BrokerSettings, SettingOptions, of_cluster, of_log
from kustos.cli.failures import usage_error
from kustos.cli.options import AclFormName
from kustos.cli.terminal import progress
from kustos.cli.text_files import STANDARD_INPUT, called_name, read_text
from kustos.metadata import METADATA_SUFFIXES
from kustos.runtime import FileSystemStorage, TextFileError, expanded, read_git_text

if TYPE_CHECKING:
    from kustos.client.admin import AdminClient
    from kustos.metadata.inspection import Moment, StateAt

CLUSTER_SCHEME: Final = "kafka://"
GIT_SCHEME: Final = "git:"
NO_SETTINGS: Final = BrokerSettings(unknown="for a file")


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


class _SourceKind(Enum):
    FILE = auto()
    """A file in any form, or standard input."""
    METADATA = auto()
    """A metadata directory, a snapshot, or a log segment."""
    CLUSTER = auto()
    GIT = auto()


_SCHEMES: Final = {_SourceKind.CLUSTER: CLUSTER_SCHEME, _SourceKind.GIT: GIT_SCHEME}


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSource:
    """Where ACLs are and how to read them.

    `text` is a file in any form, `-` for standard input, a metadata directory, also `DIR@MOMENT`,
    `kafka://HOST:PORT[,...]`, or `git:REVISION:PATH`; None if the user gave none. Paths are relative to
    `folder`. `moment` is an offset or time in the log of a directory. `settings` are the broker settings from
    the options, None if the command does not need them.
    """

    text: str | None = None
    moment: str | None = None
    form: AclFormName | None = None
    command_config: Path | None = None
    ignore_torn_tail: bool = False
    settings: SettingOptions | None = None
    folder: Path = Path()

    @classmethod
    def stated(
        cls, *, acls: str | None, bootstrap_server: str | None, metadata_dir: Path | None, **how: Any
    ) -> Self:
        """Return the source of the option that the user gave; raise a usage error for several."""
        servers = None if bootstrap_server is None else f"{CLUSTER_SCHEME}{bootstrap_server}"
        directory = None if metadata_dir is None else str(metadata_dir)
        given = [each for each in (acls, servers, directory) if each is not None]
        if len(given) > 1:
            raise usage_error(f"`{given[0]}` and `{given[1]}` both name the source of ACLs, give one of them")
        if directory is not None:
            how["form"] = AclFormName.METADATA
        return cls(text=given[0] if given else None, **how)

    def or_cluster(self, bootstrap_server: str | None) -> Self:
        """Return this source, or the cluster if the user named one; raise a usage error for both."""
        if bootstrap_server is None:
            return self
        servers = f"{CLUSTER_SCHEME}{bootstrap_server}"
        if self.text is not None:
            raise usage_error(f"`{self.text}` and `{servers}` both name the source of ACLs, give one of them")
        return replace(self, text=servers)

    @property
    def is_standard_input(self) -> bool:
        """Whether the ACLs come from standard input."""
        return self.text == STANDARD_INPUT

    @property
    def servers(self) -> str | None:
        """The bootstrap servers of the cluster with the ACLs, None for another source."""
        place, text, _ = self._resolved()
        return text if place is _SourceKind.CLUSTER else None

    @property
    def path(self) -> Path | None:
        """The file or directory with the ACLs, None for another source."""
        place, text, _ = self._resolved()
        is_file = place in {_SourceKind.FILE, _SourceKind.METADATA} and text != STANDARD_INPUT
        return self._at(text) if is_file else None

    @property
    def without_moment(self) -> str | None:
        """The directory of a source at a moment, None for another source."""
        _, text, moment = self._resolved()
        return None if moment is None else text

    def other(self, text: str, moment: str | None = None) -> Self:
        """Return another source that is read with the same options."""
        return replace(self, text=text, moment=moment)

    def load(self, binding_filter: AclBindingFilter = EVERY_BINDING) -> LoadedAcls:
        """Return the ACLs; from a cluster only those that match the filter.

        Raises a usage error for a source that cannot be read, `AclFormatError`, `MetadataError` or
        `ClientError` for one with other content.
        """
        loaded = self._load(binding_filter)
        return loaded if self.settings is None else loaded.judged_by(self.settings)

    def _load(self, binding_filter: AclBindingFilter) -> LoadedAcls:
        place, text, moment = self._resolved()
        if place is _SourceKind.CLUSTER:
            return _read_cluster(text, self.command_config, binding_filter, self.settings)
        if place is _SourceKind.GIT:
            return self._read_revision(text)
        path = self._at(text)
        if place is _SourceKind.METADATA:
            return _read_metadata(path, moment, ignore_torn_tail=self.ignore_torn_tail)
        file = text if text == STANDARD_INPUT else path
        called = called_name(file)
        with progress(f"reading {called}"):
            return self._of_text(read_text(file), called, called)

    def _resolved(self) -> tuple[_SourceKind, str, str | None]:
        """Return the kind of place, its text without scheme and moment, and the moment."""
        text, moment = self.text, self.moment
        if not text:
            # an empty text is a variable without a value, not the current directory
            # a context would supply the default here
            raise usage_error(
                "the source of ACLs is missing, give `--acls` with a file, a metadata directory, "
                "`kafka://HOST:PORT`, or `-` for standard input"
            )
        text, moment = split_moment(text, moment, self.folder)
        place = self._place_of(text)
        if moment is not None and not (place is _SourceKind.METADATA and self._at(text).is_dir()):
            raise usage_error(
                f"only a metadata directory has earlier moments, but `{text}` is not a directory"
            )
        return place, text.removeprefix(_SCHEMES.get(place, "")), moment

    def _place_of(self, text: str) -> _SourceKind:
        if text == STANDARD_INPUT and self.form is AclFormName.METADATA:
            raise usage_error("metadata cannot come from standard input, name its file or directory")
        for place, scheme in _SCHEMES.items():
            if text.startswith(scheme):
                return place
        if text == STANDARD_INPUT:
            return _SourceKind.FILE
        path = self._at(text)
        is_metadata = path.is_dir() or (self.form is None and path.suffix in METADATA_SUFFIXES)
        return _SourceKind.METADATA if is_metadata or self.form is AclFormName.METADATA else _SourceKind.FILE

    def _at(self, text: str) -> Path:
        return self.folder / expanded(text)

    def _read_revision(self, text: str) -> LoadedAcls:
        revision, colon, file = text.rpartition(":")
        if not colon or not revision or not file:
            raise usage_error(f"`{self.text}` names no file in git, write `git:REVISION:PATH`")
        name = f"{GIT_SCHEME}{text}"
        try:
            with progress(f"reading {name}"):
                return self._of_text(read_git_text(self._at(file), revision, FILE_BYTES_MAX, name), name)
        except TextFileError as error:
            raise usage_error(str(error)) from error

    def _of_text(self, text: str, name: str, path: str | None = None) -> LoadedAcls:
        known = detect_form(text, name) if self.form is None else AclForm(self.form.value)
        return LoadedAcls(name, tuple(read_acls(text, known, name)), path)


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


def split_moment(text: str, at: str | None, folder: Path = Path()) -> tuple[str, str | None]:
    """Return the directory and the moment of `DIR@MOMENT`; for another text the text and `at`.

    A file or directory with `@` in its name means itself. Raises a usage error for two moments.
    """
    directory, sign, moment = text.rpartition("@")
    path = folder / expanded(directory)
    if not sign or (folder / expanded(text)).exists() or not path.is_dir():
        return text, at
    if at is not None:
        raise usage_error(f"`{text}` and `--at {at}` both name a moment, leave out one")
    return directory, moment


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
