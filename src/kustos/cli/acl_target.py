"""Where a command writes a set of ACLs: a file, or standard output, in a form."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kustos.acl import AclBinding
from kustos.acl.forms import AclForm, form_of_name, write_acls
from kustos.cli.failures import usage_error
from kustos.cli.options import AclFormName
from kustos.cli.terminal import progress
from kustos.cli.text_files import STANDARD_INPUT
from kustos.metadata import METADATA_SUFFIXES
from kustos.runtime import FileSystemStorage


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
