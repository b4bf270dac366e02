"""Where commands read ACLs: a file in any form, standard input, a metadata directory, a running cluster.

All four end in one `AclListing`. A file is refused whole if any part of it is not understood.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kustos.acl import EVERY_BINDING, AclBinding, AclBindingFilter
from kustos.acl.forms import FILE_BYTES_MAX, AclForm, LocatedBinding, form_of_name, form_of_text, read_acls
from kustos.cli.acl_options import AclFormName
from kustos.cli.failures import usage_error
from kustos.cli.progress import progress
from kustos.metadata.suffixes import METADATA_SUFFIXES
from kustos.runtime import TextFileError, read_text_file, read_text_stream, reason_of

if TYPE_CHECKING:
    from kustos.analysis.rules import Rules
    from kustos.metadata.inspection.timeline import Moment, StateAt

STANDARD_INPUT: Final = "-"
CLUSTER_SCHEME: Final = "kafka://"


@dataclass(frozen=True, slots=True)
class AclListing:
    """ACLs in the order in which they were read, repeated ones too.

    `name`: what people call the source. `path`: the file that lines are of, None without lines (0 then).
    """

    name: str
    located: tuple[LocatedBinding, ...]
    path: str | None = None

    @property
    def bindings(self) -> list[AclBinding]:
        """The ACLs, each once."""
        return list(dict.fromkeys([each.binding for each in self.located]))


@dataclass(frozen=True, slots=True, kw_only=True)
class AclSource:
    """What the options `--acls`, `--form`, `--metadata-dir`, `--at` and `--bootstrap-server` said."""

    acls: str | None = None
    form: AclFormName | None = None
    metadata_dir: Path | None = None
    at: str | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None

    def load(self, asked: AclBindingFilter = EVERY_BINDING) -> AclListing:
        """Return the ACLs; of a cluster only those asked for. Raises what reading raises."""
        given = [each for each in (self.acls, self.metadata_dir, self.bootstrap_server) if each is not None]
        if len(given) != 1:
            raise usage_error(
                "say where the ACLs are: `--acls`, `--metadata-dir` or `--bootstrap-server`, one of them"
            )
        if self.at is not None and self.metadata_dir is None:
            raise usage_error("`--at` looks back in a metadata log: give `--metadata-dir` too")
        if self.acls is not None:
            return read_acl_file(self.acls, self.form)
        if self.metadata_dir is not None:
            return _read_metadata(self.metadata_dir, self.at)
        return _read_cluster(self.bootstrap_server or "", self.command_config, asked)


def rules_of(super_users: str, allow_everyone_if_no_acl_found: bool) -> "Rules":
    """Return the settings of the brokers that the options gave."""
    from kustos.analysis.rules import Rules
    from kustos.authorizer import parse_super_users

    return Rules(
        super_users=parse_super_users(super_users),
        allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
    )


def read_location(
    text: str, form: AclFormName | None, command_config: Path | None, at: str | None = None
) -> AclListing:
    """Return the ACLs of a file, of a directory, of `-`, or of the cluster at `kafka://host:port`.

    With `at` it must be a directory, whose ACLs are those of that moment.
    """
    if at is not None:
        if not Path(text).is_dir():
            raise usage_error(f"`--at` looks back in a metadata log, but `{text}` is no directory")
        return _read_metadata(Path(text), at)
    if text.startswith(CLUSTER_SCHEME):
        return _read_cluster(text.removeprefix(CLUSTER_SCHEME), command_config, EVERY_BINDING)
    return read_acl_file(text, form)


def read_acl_file(name: str, form: AclFormName | None = None) -> AclListing:
    """Return the ACLs of a file, `-` for standard input; a directory is one of metadata.

    Raises a usage error for a file that cannot be read, `AclFormatError` and `MetadataError` for one that
    holds something else.
    """
    path = Path(name)
    if name != STANDARD_INPUT:
        is_metadata = path.is_dir() or (form is None and path.suffix in METADATA_SUFFIXES)
        if is_metadata or form is AclFormName.METADATA:
            return _read_metadata(path)
    elif form is AclFormName.METADATA:
        raise usage_error("metadata cannot come from standard input, name its file or directory")
    called = called_name(name)
    with progress(f"reading {called}"):
        text = read_text(name)
        known = form_of_name(name) if form is None else AclForm(form.value)
        known = known or form_of_text(text)
        if known is None:
            raise usage_error(f"{called} is blank; if that means no ACLs, say its form with `--form`")
        return AclListing(called, tuple(read_acls(text, known, called)), called)


def called_name(name: str) -> str:
    """Return what people call a file, or standard input."""
    return "standard input" if name == STANDARD_INPUT else name


def read_text(name: str) -> str:
    """Return the text of a file, `-` for standard input; raise a usage error if there is none."""
    try:
        if name == STANDARD_INPUT:
            return read_text_stream(sys.stdin.buffer, FILE_BYTES_MAX, called_name(name))
        return read_text_file(Path(name), FILE_BYTES_MAX)
    except OSError as error:
        raise usage_error(f"cannot read `{called_name(name)}`: {reason_of(error)}") from error
    except TextFileError as error:
        raise usage_error(str(error)) from error


def _read_metadata(path: Path, at: str | None = None) -> AclListing:
    from kustos.metadata.acl_files import read_acl_files

    if at is not None:
        return _read_metadata_at(path, at)
    with progress(f"reading {path}"):
        bindings = read_acl_files(path)
    return _listing(str(path), bindings)


def _read_metadata_at(path: Path, at: str) -> AclListing:
    return _listing(f"{path} at {at}", list(state_at(path, at).image.acls.values()))


def state_at(path: Path, at: str) -> "StateAt":
    """Return the state of a metadata directory at a moment, and say on standard error which that is.

    Raises a usage error for a text that names no moment, and what `Timeline` raises.
    """
    from kustos.metadata.inspection.timeline import Timeline
    from kustos.runtime import FileSystemStorage

    moment = moment_of(at)
    with progress(f"reading {path}"):
        state = Timeline(path, FileSystemStorage()).state_at(moment)
    sys.stderr.write(f"as of {state.text}\n")
    return state


def moment_of(at: str) -> "Moment":
    """Return the moment that `--at` names; raise a usage error for none."""
    from kustos.metadata.inspection.timeline import Moment

    try:
        return Moment.parse(at.strip())
    except ValueError as error:
        raise usage_error(str(error)) from None


def _read_cluster(servers: str, command_config: Path | None, asked: AclBindingFilter) -> AclListing:
    from kustos.cli.session import ask_cluster

    bindings = ask_cluster(servers, command_config, lambda admin: admin.describe_acls(asked), "reading ACLs")
    return _listing(f"the cluster at {servers}", bindings)


def _listing(name: str, bindings: Sequence[AclBinding]) -> AclListing:
    from kustos.cli.acls.mapping import sorted_bindings

    return AclListing(name, tuple([LocatedBinding(binding, 0) for binding in sorted_bindings(bindings)]))
