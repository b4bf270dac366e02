"""Sets of principals: some by name, or everyone but some."""

from dataclasses import dataclass
from typing import Any, Final

from kustos.analysis.wording import listed

_WITNESS: Final = "User:someone"


@dataclass(frozen=True, slots=True)
class PrincipalSet:
    """Which principals, as `Type:name`; with `is_everyone_but` all the endless others, not these."""

    names: tuple[str, ...]
    is_everyone_but: bool = False

    def __contains__(self, principal: str) -> bool:
        return (principal in self.names) is not self.is_everyone_but

    def witness(self) -> str:
        """Return a principal that is in; raise `ValueError` if there is none."""
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

    def text(self) -> str:
        """Return words such as `everyone except User:alice`."""
        if not self.is_everyone_but:
            return listed(self.names, "and") or "nobody"
        return f"everyone except {listed(self.names, 'and')}" if self.names else "everyone"

    def to_json(self) -> dict[str, Any]:
        """Return `{"in": [...]}` or `{"except": [...]}`."""
        return {"except" if self.is_everyone_but else "in": list(self.names)}
