"""Where sets of ACLs are read from: a file in any form, Kafka's metadata, a git revision of a file."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

from kustos.acl import AclBinding
from kustos.acl.forms import FILE_BYTES_MAX, AclForm, AclFormatError, detect_form, form_of_name, read_acls
from kustos.metadata import METADATA_SUFFIXES, MetadataError
from kustos.pipeline.deciding.acl_set import AclsInForce
from kustos.pipeline.errors import AclSetError
from kustos.runtime import TextFileError, read_text_file, reason_of, text_of_bytes

GIT_TIMEOUT_S: Final = 60
"""For one file of a local repository; longer means that git waits for input."""

_REVISION: Final = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}^~+-]{0,199}")
"""A name of a commit; no leading `-`, which would be an option, and no `:`, which ends a revision."""

_GIT_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
}


def read_acl_set(
    path: Path,
    form: AclForm | None = None,
    *,
    at: str | None = None,
    name: str | None = None,
    super_users: str = "",
    allow_everyone_if_no_acl_found: bool = False,
) -> AclsInForce:
    """Return the ACLs of a file in any form that `kustos diff` reads, or of a metadata directory.

    A directory, a `.checkpoint` and a `.log` are Kafka's metadata; `at` is an offset or a time that a
    directory's log still holds. Raises `AclSetError`, which names the file and the line.
    """
    is_metadata = path.is_dir() or (form is None and path.suffix in METADATA_SUFFIXES)
    if at is not None and not path.is_dir():
        raise AclSetError(f"a moment is looked up in a metadata log, but `{path}` is not a directory")
    try:
        bindings = (
            _of_metadata(path, at)
            if is_metadata
            else _of_text(read_text_file(path, FILE_BYTES_MAX, "ACLs"), form, str(path))
        )
    except TextFileError as error:
        raise AclSetError(str(error)) from error
    return AclsInForce.of(
        name or (f"{path} at {at}" if at else str(path)),
        bindings,
        super_users=super_users,
        allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
    )


def read_acl_set_at_revision(
    path: Path,
    revision: str,
    form: AclForm | None = None,
    *,
    name: str | None = None,
    super_users: str = "",
    allow_everyone_if_no_acl_found: bool = False,
) -> AclsInForce:
    """Return the ACLs of a file as a git revision of its repository has it; the file itself is not read.

    The file may be gone, its folder must exist. Runs `git` without a shell, filters, pagers or the network.
    Raises `AclSetError`.
    """
    if not _REVISION.fullmatch(revision):
        raise AclSetError(f"`{revision}` names no git revision, write a commit, a branch or a tag")
    called = name or f"{path} at {revision}"
    place = f"{revision}:./{path.name}"
    size = int(_git(path.parent, "cat-file", "-s", place))
    if size > FILE_BYTES_MAX:
        raise AclSetError(f"{called} is larger than {FILE_BYTES_MAX} bytes, split it")
    try:
        text = text_of_bytes(_git(path.parent, "cat-file", "blob", place), called)
    except TextFileError as error:
        raise AclSetError(str(error)) from error
    return AclsInForce.of(
        called,
        _of_text(text, form or form_of_name(path.name), called),
        super_users=super_users,
        allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
    )


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - no shell, a checked revision, and never an option of the user's
            ["git", "--no-pager", *arguments],  # noqa: S607
            cwd=folder,
            env=os.environ | _GIT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        missing = "git is not installed" if folder.is_dir() else f"there is no folder `{folder}`"
        raise AclSetError(f"{missing}, a revision cannot be read") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AclSetError(f"git failed in `{folder}`: {error}") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines()[:1] or ["it does not say why"]
        raise AclSetError(f"git has no `{arguments[-1]}` in `{folder}`: {reason[0]}")
    return done.stdout


def _of_metadata(path: Path, at: str | None) -> list[AclBinding]:
    from kustos.metadata.directory import read_acl_files
    from kustos.metadata.inspection import Moment, Timeline
    from kustos.runtime import FileSystemStorage

    try:
        if at is None:
            return read_acl_files(path)
        return list(Timeline(path, FileSystemStorage()).state_at(Moment.parse(at)).image.acls.values())
    except (MetadataError, ValueError) as error:
        raise AclSetError(str(error)) from error
    except OSError as error:
        raise AclSetError(f"cannot read `{path}`: {reason_of(error)}") from error


def _of_text(text: str, form: AclForm | None, called: str) -> list[AclBinding]:
    try:
        known = form or detect_form(text, called)
        return [located.binding for located in read_acls(text, known, called)]
    except AclFormatError as error:
        raise AclSetError(str(error)) from error
