"""Where sets of ACLs are read from: a file in any form, Kafka's metadata, a git revision of a file."""

from pathlib import Path

from kustos.acl import AclBinding
from kustos.acl.forms import FILE_BYTES_MAX, AclForm, AclFormatError, detect_form, form_of_name, read_acls
from kustos.metadata import METADATA_SUFFIXES, MetadataError
from kustos.pipeline.deciding.acl_set import AclsInForce
from kustos.pipeline.errors import AclSetError
from kustos.runtime import TextFileError, read_git_text, read_text_file, reason_of


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

    The file may be gone, its folder must exist. Raises `AclSetError`.
    """
    called = name or f"{path} at {revision}"
    try:
        text = read_git_text(path, revision, FILE_BYTES_MAX, called)
    except TextFileError as error:
        raise AclSetError(str(error)) from error
    return AclsInForce.of(
        called,
        _of_text(text, form or form_of_name(path.name), called),
        super_users=super_users,
        allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
    )


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
