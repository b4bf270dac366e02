"""Regular expressions of names: of topics in the consumer group protocol (KIP-848), and of transactional ids
in ListTransactions (KIP-1152).

An expression is RE2's and matches the whole name. A broker would resolve the expression of a member by its
own authorizer, which sees only kustos as a client. So kustos resolves it; upstream gets what
`quoted_patterns` makes of it.

Every client that may read a group chooses the expression of topics, and every client chooses that of
transactional ids. RE2 takes time linear in the name, and a bounded program bounds the factor: the worst one
takes two microseconds for each instruction and name of a topic, most take two in all.
"""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kustos.extras import needs_extra
from kustos.protocol.topic_names import TOPIC_NAME_LENGTH_MAX

if TYPE_CHECKING:
    import re2

PATTERN_CHARACTERS_MAX: Final = 1024
"""Most characters of one expression: those in use have less than a hundred."""

PROGRAM_INSTRUCTIONS_MAX: Final = 2_000
"""Of RE2's compiled program: one name then takes 5 ms at most, a turn of the event loop. An alternation of a
hundred long names has a thousand."""

UNICODE_CLASS: Final = re.compile(r"\\[pP]")
UNICODE_CLASSES_MAX: Final = 16
"""Of Unicode characters (`\\pL`) in one expression: each takes RE2 0.1 ms to read, before it limits the
program, and hardly any name of a topic needs one."""

MEMORY_MAX_BYTES: Final = 256 * 1024
"""RE2's limit for one expression and what it remembers while it matches: RE2 keeps 128 expressions."""

INSTRUCTIONS_PER_ITEM: Final = 2
"""How many instructions take as long as an item of a turn, at worst."""

PATTERNS_KEPT_MAX: Final = 64
"""Expressions whose matches are kept: a cluster's consumers share a few. With 10,000 topics that each of them
matches they take 5 MB."""


class TopicPatternError(ValueError):
    """A text that is not an expression, or too large a one; the text says why, as Kafka's brokers do."""


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A regular expression of names. `cost`: what the name of a topic costs at worst, in items of a turn."""

    text: str
    cost: int
    _compiled: "re2._Regexp" = field(repr=False, compare=False)

    @classmethod
    def compile(cls, text: str) -> "TopicPattern":
        """Return the expression; raise `TopicPatternError`, or `ExtraMissingError` without RE2."""
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
        """Return what a name of any length costs at worst, in items of a turn."""
        return self.cost * (1 + len(name.encode()) // TOPIC_NAME_LENGTH_MAX)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterTopics:
    """The names of all topics upstream as of some seconds ago; they have another number once they changed."""

    names: tuple[str, ...]
    number: int = 0
    name_set: frozenset[str] = field(init=False, repr=False)
    _matches: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name_set", frozenset(self.names))

    def known_matches(self, pattern: TopicPattern) -> tuple[str, ...] | None:
        """Return the names that an expression matches, None if it was not matched before."""
        return self._matches.get(pattern.text)

    def keep_matches(self, pattern: TopicPattern, names: tuple[str, ...]) -> None:
        """Keep the names that an expression matches; the oldest expression makes room."""
        if len(self._matches) >= PATTERNS_KEPT_MAX:
            del self._matches[next(iter(self._matches))]
        self._matches[pattern.text] = names
