"""Detects the format of a text by the extension of its name, or else by its beginning."""

import re
from typing import Final

from kustos.acl.forms.values import AclForm, AclFormatError, Place, numbered_lines

_EXTENSIONS: Final = {
    ".json": AclForm.JSON,
    ".jsonl": AclForm.JSON_LINES,
    ".ndjson": AclForm.JSON_LINES,
    ".yaml": AclForm.YAML,
    ".yml": AclForm.YAML,
    ".csv": AclForm.CSV,
}

_TERRAFORM: Final = (
    "this is a configuration of Terraform, whose values may be expressions; "
    "give what `terraform show -json` prints"
)

_SIGNS: Final[tuple[tuple[re.Pattern[str], AclForm | str], ...]] = (
    # a header row, with commas or as `rpk` prints it
    (
        re.compile(
            r"\A\s*(?=[^\n]*principal)(?=[^\n]*host)(?=[^\n]*operation)[\w \",\r-]+(\n|\Z)", re.IGNORECASE
        ),
        AclForm.CSV,
    ),
    # anywhere in the text: output of other programs may precede the list, and the reader reports it
    (
        re.compile(r"^ *(((Current|Adding) )?ACLs for (resource|principal) `|\t\(principal=)", re.MULTILINE),
        AclForm.KAFKA_ACLS,
    ),
    # a line of a log begins with `[` and its time
    (re.compile(r"\A\s*(\{|\[(?!\d))"), AclForm.JSON),
    (re.compile(r'^[ \t]*resource[ \t]+"kafka_acl"', re.MULTILINE), _TERRAFORM),
    (re.compile(r"^(---|(acls|kind) *:| *- )", re.MULTILINE), AclForm.YAML),
)
"""A pattern in a text, and its format or the reason to refuse it; the first match counts."""


def form_of_name(name: str) -> AclForm | None:
    """Return the form for the extension of a file name, None for an unknown extension."""
    dot = name.rfind(".")
    return _EXTENSIONS.get(name[dot:].lower()) if dot >= 0 else None


def detect_form(text: str, name: str) -> AclForm:
    """Return the format for the extension of a name, else for the text; raise `AclFormatError` if there is
    none."""
    form = form_of_name(name)
    if form is not None:
        return form
    number, line = next(((n, line) for n, line in numbered_lines(text, name) if line.strip()), (1, ""))
    if not line:
        raise AclFormatError(
            Place(name, 1),
            "",
            "the text is blank; if that means no ACLs, say its form by an extension or `--form`",
        )
    for sign, found in _SIGNS:
        if sign.search(text):
            if isinstance(found, AclForm):
                return found
            raise AclFormatError(Place(name, number), "", found)
    raise AclFormatError(
        Place(name, number),
        line.strip(),
        "begins no form of ACLs: kafka-acls' list, JSON, YAML or CSV; if it is one, "
        "say which by an extension or `--form`",
    )
