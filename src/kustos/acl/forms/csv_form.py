"""Tables with a header row: CSV, and the columns that `rpk` prints.

Every CSV field is written in quotes, so a line break in a name does not end its row.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from kustos.acl.forms.fields import FIELDS, binding_of_named_fields, field_names, fields_of
from kustos.acl.forms.values import AclFormatError, LocatedBinding, Place, numbered_lines
from kustos.acl.values import AclBinding

_HEADING: Final = re.compile(r"\S+ *")


def read_csv(text: str, name: str) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a table whose first row names the columns, in any order; raise `AclFormatError`.

    The fields are separated by commas. If the first row has none, each field begins below its heading, as in
    the output of `rpk security acl list`.
    """
    names: list[str] | None = None
    for line, row in _rows(text, name):
        place = Place(name, line)
        if names is None:
            names = field_names(row, place)
            continue
        if len(row) != len(names):
            raise AclFormatError(
                place, "", f"the row has {len(row)} fields where the first row names {len(names)}"
            )
        yield LocatedBinding(binding_of_named_fields(dict(zip(names, row, strict=True)), place), line)
    if names is None:
        raise AclFormatError(Place(name, 1), "", f"the first row must be `{','.join(FIELDS)}`")


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each row that is not blank, with its first line."""
    first = next((line for _, line in numbered_lines(text, name) if line.strip()), "")
    if "," not in first and len(first.split()) > 1:
        yield from _columns(text, name)
        return
    rows = csv.reader((f"{line}\n" for _, line in numbered_lines(text, name)), strict=True)
    line = 1
    try:
        for row in rows:
            if row:
                yield line, row
            line = rows.line_num + 1
    except csv.Error as error:
        raise AclFormatError(Place(name, line), "", f"this is not a row of CSV: {error}") from None


def _columns(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    starts: list[int] = []
    for number, line in numbered_lines(text, name):
        row = line.rstrip(" \r")
        if not row:
            continue
        starts = starts or [heading.start() for heading in _HEADING.finditer(row)]
        fields = [row[start:end].rstrip() for start, end in pairwise([*starts, len(row)])]
        for start, field in zip(starts, fields, strict=True):
            if row[max(0, start - 1) : start].strip() or field[:1] == " ":
                raise AclFormatError(
                    Place(name, number), row, "has a field that does not begin below its heading"
                )
        yield number, fields


def write_csv(bindings: Iterable[AclBinding]) -> str:
    """Return the table, header row first."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    out.write(",".join(FIELDS) + "\n")
    writer.writerows([fields_of(binding).values() for binding in bindings])
    return out.getvalue()
