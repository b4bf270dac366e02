"""Writes one of many events of allowed use, where an operator chose that, and counts the others.

Only plain use is sampled: allowed READ, WRITE, DESCRIBE and the like. Never sampled are denials, anything
that changes something, and what ACLs in the shadow would decide otherwise. The first use of an hour is always
written, so that the trail still says who uses what; which of the others are, nobody can predict.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kustos.acl import AclOperation
from kustos.authorizer import AuthorizableRequestContext
from kustos.protocol import Decided
from kustos.runtime import Entropy

SAMPLED_OPERATIONS: Final = frozenset(
    {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    }
)
"""Operations of programs that run: who changes topics, ACLs or settings is always recorded."""

FIRST_USE_MS: Final = 3_600_000
"""How long a use is known; after that the next one is a first one again."""

USES_MAX: Final = 65_536
"""Uses that are known at once, some 20 MB; beyond that all are forgotten, and more events are written."""

NAME_CHARACTERS_MAX: Final = 255
"""Names kept whole; of longer ones their hash is."""

RANDOM_BYTES: Final = 4


class AllowedSample:
    """Chooses the allowed uses that are written, one of `one_in` besides the first ones.

    `monotonic_ms` is the clock of the hours.
    """

    def __init__(self, one_in: int, monotonic_ms: Callable[[], int], entropy: Entropy) -> None:
        self.left_out = 0
        """Decisions without an event, since the start."""
        self.one_in = one_in
        """May be changed at any time."""
        self._monotonic_ms: Final = monotonic_ms
        self._entropy: Final = entropy
        self._known: Final[set[tuple[object, ...]]] = set()
        self._known_since_ms = monotonic_ms()

    @property
    def leaves_out(self) -> bool:
        """Whether some events are not written."""
        return self.one_in != 1

    def choose(self, context: AuthorizableRequestContext, decided: Sequence[Decided]) -> Sequence[Decided]:
        """Return the decisions of a request that are written, in order."""
        if not self.leaves_out:
            return decided
        now_ms = self._monotonic_ms()
        if now_ms - self._known_since_ms >= FIRST_USE_MS or len(self._known) >= USES_MAX:
            self._known.clear()
            self._known_since_ms = now_ms
        drawn = int.from_bytes(self._entropy.token_bytes(RANDOM_BYTES), "big") % self.one_in == 0
        chosen = []
        for item in decided:
            if not is_plain_use(item) or self._is_first(context, item):
                chosen.append(item)
            elif drawn:
                chosen.append(item._replace(sampled_one_in=self.one_in))
            else:
                self.left_out += 1
        return chosen

    def _is_first(self, context: AuthorizableRequestContext, item: Decided) -> bool:
        action = item.action
        use = (
            context.principal,
            context.host,
            action.operation,
            action.resource_type,
            item.name if item.name is None or len(item.name) <= NAME_CHARACTERS_MAX else hash(item.name),
            item.listing,
        )
        count = len(self._known)
        self._known.add(use)
        return len(self._known) > count


def is_plain_use(item: Decided) -> bool:
    """Whether a decision may be left out of the log."""
    differs = item.shadow is not None or (
        # a candidate without answers must not switch the sampling off
        item.candidate is not None and item.candidate.decision is not None
    )
    return item.decision.allowed and item.action.operation in SAMPLED_OPERATIONS and not differs
