"""Sets of principals: some by name, or everyone but some."""

from dataclasses import dataclass
from typing import Any, Final

from kustos.analysis.wording import SHOWN_MAX, listed

_WITNESS: Final = "User:someone"


@dataclass(frozen=True, slots=True)
class PrincipalSet:
    """A set of principals as `Type:name`; with `is_everyone_but` all principals except these."""

    names: tuple[str, ...]
    is_everyone_but: bool = False

    def __contains__(self, principal: str) -> bool:
        return (principal in self.names) is not self.is_everyone_but

    def witness(self) -> str:
        """Return a principal in the set; raise `ValueError` if there is none."""
        if not self.is_everyone_but:
            if not self.names:
                raise ValueError("no principal is in an empty set")
            return self.names[0]
        taken = set(self.names)
        witness, number = _WITNESS, 1
        while witness in taken:
            number += 1
            witness = f"{_WITNESS}-{number}"
        return witness

    def text(self, shown_max: int = SHOWN_MAX) -> str:
        """Return words such as `everyone except User:alice`."""
        names = listed(self.names, "and", shown_max)
        if not self.is_everyone_but:
            return names or "nobody"
        return f"everyone except {names}" if names else "everyone"

    def to_json(self) -> dict[str, Any]:
        """Return `{"in": [...]}` or `{"except": [...]}`."""
        return {"except" if self.is_everyone_but else "in": list(self.names)}
