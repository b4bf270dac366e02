"""Entitlements beside those of a former review: what is new, changed or gone, and what was decided then.

A row is the same in every review (`signoff.entitlement_id_of`): the operation and the ACL, or the super user.
Uses come and go by themselves; a row has *changed* if its meaning for a reviewer changed: other DENYs, a
recreated ACL, more or fewer principals and names that it covers, another team, or it fell out of use.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kustos.signoff.csv_form import COMPARED_COLUMNS
from kustos.signoff.document import Document, entitlement_id_of, plain_value

NEW: Final = "NEW"
CHANGED: Final = "CHANGED"
SAME: Final = "SAME"
GONE: Final = "GONE"
"""The words of `change`."""

COMPARED: Final = (
    "team",
    "effect",
    "denied_by",
    "granted_since",
    "principal_count",
    "name_count",
    "is_dormant",
)
"""The columns whose difference is a change; `changed` names them."""


def former_of(document: Document) -> dict[str, Document]:
    """Return the rows of a verified review by their ids, each with `former_decision`, null if undecided."""
    decisions = document["decisions"]
    return {
        row["row_id"]: {**row, "former_decision": decisions.get(row["row_id"], {}).get("verdict")}
        for row in document["review"]["rows"]
    }


class Comparison:
    """A pass over today's rows beside those of a former review; without one, rows pass as they are.

    `counts` are the numbers of rows by `change`, and of those once revoked that are still granted
    (`revoked_and_granted`); they and `gone` are whole after the pass.
    """

    def __init__(self, former: Mapping[str, Document] | None) -> None:
        self._former: Final = former
        self._seen: Final[set[str]] = set()
        self.counts: Final[dict[str, int]] = {}

    def of(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield rows of `entitlements` with COMPARED_COLUMNS."""
        for row in rows:
            if self._former is None:
                yield {**row, **dict.fromkeys(COMPARED_COLUMNS)}
                continue
            plain = {name: plain_value(value) for name, value in row.items()}
            row_id = entitlement_id_of(plain)
            before = self._former.get(row_id)
            self._seen.add(row_id)
            changed = [] if before is None else [name for name in COMPARED if before[name] != plain[name]]
            change = NEW if before is None else CHANGED if changed else SAME
            decision = None if before is None else before["former_decision"]
            self._count(change)
            if decision == "revoke":
                self._count("revoked_and_granted")
            yield {**row, "change": change, "changed": changed, "former_decision": decision}

    def gone(self) -> list[dict[str, Any]]:
        """Return the former rows that no row of today is, as they were then."""
        missing = [row for row_id, row in (self._former or {}).items() if row_id not in self._seen]
        self.counts.pop(GONE, None)
        if missing:
            self.counts[GONE] = len(missing)
        return [{**row, "change": GONE, "changed": []} for row in missing]

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
