"""Regular expressions for topic names in the consumer group protocol (KIP-848) and for transactional ids in
ListTransactions (KIP-1152).

An expression has RE2 syntax and matches the whole name. A broker would resolve the expression of a member
with its own authorizer, which sees only kustos as a client. So kustos resolves the expression; upstream gets
the quoted form from `quoted_patterns`.

Every client that may read a group chooses the topic expression, and every client chooses the expression for
transactional ids. RE2 takes time linear in the length of the name, and a bounded program bounds the factor:
the worst program takes two microseconds per instruction and topic name, most take two in total.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kustos.extras import needs_extra
from kustos.protocol.topic_names import TOPIC_NAME_LENGTH_MAX

if TYPE_CHECKING:
    import re2

PATTERN_CHARACTERS_MAX: Final = 1024
"""Most characters of one expression: expressions in use have less than a hundred."""

PROGRAM_INSTRUCTIONS_MAX: Final = 2_000
"""Most instructions of RE2's compiled program: one name then takes at most 5 ms, a turn of the event loop. An
alternation of a hundred long names has a thousand instructions."""

UNICODE_CLASS: Final = re.compile(r"\\[pP]")
UNICODE_CLASSES_MAX: Final = 16
"""Most Unicode classes (`\\pL`) in one expression: RE2 takes 0.1 ms to parse each one, before it limits the
program, and hardly any topic name needs one."""

MEMORY_MAX_BYTES: Final = 256 * 1024
"""RE2's memory limit for one expression and its matching state: RE2 caches 128 expressions."""

INSTRUCTIONS_PER_ITEM: Final = 2
"""Instructions that take as long as one item of a turn, in the worst case."""

PATTERNS_KEPT_MAX: Final = 64
"""Expressions whose matches are cached: a cluster's consumers share a few. If each one matches 10,000 topics,
the cache takes 5 MB."""


class TopicPatternError(ValueError):
    """An invalid or too large expression; the message gives the reason, as in Kafka's brokers."""


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A regular expression for names. `cost`: the worst-case cost of one topic name, in items of a turn."""

    text: str
    cost: int
    _compiled: "re2._Regexp" = field(repr=False, compare=False)

    @classmethod
    def compile(cls, text: str) -> "TopicPattern":
        """Return the compiled expression; raise `TopicPatternError`, or `ExtraMissingError` without RE2."""
        with needs_extra("mapping", "a regular expression of names"):
            import re2
        if len(text) > PATTERN_CHARACTERS_MAX:
            raise TopicPatternError(f"it is longer than {PATTERN_CHARACTERS_MAX} characters")
        if len(UNICODE_CLASS.findall(text)) > UNICODE_CLASSES_MAX:
            raise TopicPatternError(f"it has more than {UNICODE_CLASSES_MAX} classes of Unicode characters")
        options = re2.Options()
        options.max_mem = MEMORY_MAX_BYTES
        options.log_errors = False
        options.never_capture = True
        try:
            compiled = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0]
            raise TopicPatternError(reason.decode() if isinstance(reason, bytes) else reason) from None
        if compiled.programsize > PROGRAM_INSTRUCTIONS_MAX:
            raise TopicPatternError("it repeats too much")
        return cls(text, 1 + compiled.programsize // INSTRUCTIONS_PER_ITEM, compiled)

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches."""
        return self._compiled.fullmatch(name) is not None

    def cost_of(self, name: str) -> int:
        """Return the worst-case cost of a name of any length, in items of a turn."""
        return self.cost * (1 + len(name.encode()) // TOPIC_NAME_LENGTH_MAX)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTopics:
    """The names of all topics upstream, at most some seconds old; `number` changes with the names."""

    names: tuple[str, ...]
    number: int = 0
    name_set: frozenset[str] = field(init=False, repr=False)
    _matches: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name_set", frozenset(self.names))

    def known_matches(self, pattern: TopicPattern) -> tuple[str, ...] | None:
        """Return the cached names that an expression matches, None if they are not cached."""
        return self._matches.get(pattern.text)

    def keep_matches(self, pattern: TopicPattern, names: tuple[str, ...]) -> None:
        """Cache the names that an expression matches; evict the oldest expression if the cache is full."""
        if len(self._matches) >= PATTERNS_KEPT_MAX:
            del self._matches[next(iter(self._matches))]
        self._matches[pattern.text] = names
