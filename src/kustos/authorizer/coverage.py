"""Which resources some entry names: what takes default-allow away from them."""

from collections import Counter
from typing import TypeVar

from kustos.acl import WILDCARD, AclBinding, PatternType

_Key = TypeVar("_Key")


class Coverage:
    """How many entries, whosever, name a resource: Kafka's "has ACLs", asked only by default-allow."""

    __slots__ = ("_literals", "_prefix_lengths", "_prefixes")

    def __init__(self) -> None:
        self._literals: Counter[str] = Counter()
        self._prefixes: Counter[str] = Counter()
        self._prefix_lengths: Counter[int] = Counter()

    def count(self, binding: AclBinding, step: int) -> None:
        """Count a binding in (`step` 1) or out (-1)."""
        name = binding.pattern.name
        if binding.pattern.pattern_type is PatternType.LITERAL:
            self._step(self._literals, name, step)
        else:
            self._step(self._prefixes, name, step)
            self._step(self._prefix_lengths, len(name), step)

    @staticmethod
    def _step(counter: Counter[_Key], key: _Key, step: int) -> None:
        counter[key] += step
        if not counter[key]:
            del counter[key]

    def covers(self, name: str) -> bool:
        """Return whether some entry names the resource."""
        if name in self._literals or (WILDCARD in self._literals and name[:1] != WILDCARD):
            return True
        return any(name[:length] in self._prefixes for length in self._prefix_lengths if length <= len(name))
