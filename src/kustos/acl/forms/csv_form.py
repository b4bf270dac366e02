"""CSV with a header row: for programs and for joins.

Every field is written in quotes, since a line break in a name must not end its row.
"""

import csv
import io
from collections.abc import Iterable, Iterator

from kustos.acl.forms.fields import FIELDS, binding_of_fields, check_names, fields_of
from kustos.acl.forms.values import AclFormatError, LocatedBinding, Place, numbered_lines
from kustos.acl.values import AclBinding


def read_csv(text: str, name: str) -> Iterator[LocatedBinding]:
    """Yield the ACLs of a table whose first row names the columns, in any order; raise `AclFormatError`."""
    rows = csv.reader((f"{line}\n" for _, line in numbered_lines(text, name)), strict=True)
    names: list[str] | None = None
    line = 1
    try:
        for row in rows:
            place = Place(name, line)
            line = rows.line_num + 1
            if not row:
                continue
            if names is None:
                names = _column_names(row, place)
                continue
            if len(row) != len(names):
                raise AclFormatError(
                    place, "", f"the row has {len(row)} fields where the first row names {len(names)}"
                )
            yield LocatedBinding(binding_of_fields(dict(zip(names, row, strict=True)), place), place.line)
    except csv.Error as error:
        raise AclFormatError(Place(name, line), "", f"this is not a row of CSV: {error}") from None
    if names is None:
        raise AclFormatError(Place(name, 1), "", f"the first row must be `{','.join(FIELDS)}`")


def _column_names(row: list[str], place: Place) -> list[str]:
    names = [name.strip().lower() for name in row]
    check_names(names, place)
    if len(names) != len(FIELDS):
        twice = next(name for name in names if names.count(name) > 1)
        raise AclFormatError(place, twice, "names two columns")
    return names


def write_csv(bindings: Iterable[AclBinding]) -> str:
    """Return the table, header row first."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    out.write(",".join(FIELDS) + "\n")
    writer.writerows([fields_of(binding).values() for binding in bindings])
    return out.getvalue()
