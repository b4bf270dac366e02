"""Which ACLs decided, where an event names no rule or only a part of one. Pure Python, no Spark.

AclAuthorizer's lines (up to Kafka 3.9) name no rule, Confluent's events not the operation of the ACL. But the
ACLs that match the question are known, and with them the rule: the first DENY of Kafka's scan, else its last
ALLOW.

1. the ACLs in force during the record's time decide: each one that does so at any moment of it counts
2. what the event does name restricts them: pattern, principal, host and permission of the rule
3. if at no moment they decide as recorded (the history begins later, or there is none), the ACLs of today do
4. if those do not either (an ACL came or went since), each that matches with the recorded permission counts:
   an ACL that may have decided must not seem unused
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kustos.acl import KafkaPrincipal
from kustos.acl.forms import texts_of
from kustos.authorizer import StandardAuthorizer
from kustos.authorizer.index import PROBED_NAME, visit_order
from kustos.pipeline.review.matcher import Matcher, Question

MOMENTS_MAX: Final = 1_000
"""Changes of matching ACLs tried within one record's time; beyond it every matching ACL counts."""

QUESTIONS_MAX: Final = 10_000
"""Questions whose matching ACLs a worker caches: the days of a roll-up repeat them."""

ALWAYS: Final = ((-(1 << 63), 1 << 63),)
"""The life of an ACL without a history, in microseconds since the epoch."""

Life = tuple[tuple[int, int], ...]
"""When an ACL was in force: from a moment up to, not including, another."""


class RecordedDecision(NamedTuple):
    """A recorded decision: its question, whether it allowed, its time, and what is known of its rule."""

    question: Question
    is_allowed: bool
    first_us: int
    last_us: int
    rule: Mapping[str, str | None]


class _Speaking(NamedTuple):
    """The ACLs that match a question."""

    allows: tuple[int, ...] = ()
    denies: tuple[int, ...] = ()


class Deciders:
    """The ACLs of a matcher, each with its life; `today` are the positions of those in force today."""

    def __init__(
        self, matcher: Matcher, lives: Sequence[Life] | None = None, today: frozenset[int] | None = None
    ) -> None:
        self._matcher: Final = matcher
        self._lives: Final = lives
        self._today: Final = frozenset(range(len(matcher.bindings))) if today is None else today
        self._speaking: Final[dict[Question, _Speaking]] = {}

    def of(self, recorded: RecordedDecision) -> tuple[int, ...]:
        """Return the positions of the ACLs that decided at some moment of a record, none for a default."""
        if recorded.is_allowed and recorded.question.principal in self._matcher.rules.super_users:
            return ()
        speaking = self._fitting(self._speaking_of(recorded.question), recorded.rule)
        everything = frozenset((*speaking.allows, *speaking.denies))
        if self._lives is None:
            found = self._decide(recorded, speaking, everything)
        else:
            found = self._over_time(recorded, speaking, everything)
            if found is None:
                found = self._decide(recorded, speaking, everything & self._today)
        if found is None:
            matching = speaking.allows if recorded.is_allowed else speaking.denies
            return tuple(number for number in matching if number in self._today)
        return found

    def _over_time(
        self, recorded: RecordedDecision, speaking: _Speaking, everything: frozenset[int]
    ) -> tuple[int, ...] | None:
        """Return what decided at the moments at which the decision agrees; None if there is none."""
        lives = self._lives or ()
        first, last = recorded.first_us, recorded.last_us
        moments = {first}
        for number in everything:
            for life in lives[number]:
                moments.update(moment for moment in life if first < moment <= last)
        if len(moments) > MOMENTS_MAX:
            return speaking.allows if recorded.is_allowed else speaking.denies
        found: set[int] = set()
        agrees = False
        for moment in moments:
            held = {
                number for number in everything if any(begin <= moment < end for begin, end in lives[number])
            }
            decided = self._decide(recorded, speaking, frozenset(held))
            if decided is not None:
                agrees = True
                found.update(decided)
        return tuple(sorted(found)) if agrees else None

    def _decide(
        self, recorded: RecordedDecision, speaking: _Speaking, held: frozenset[int]
    ) -> tuple[int, ...] | None:
        """Return which of those `held` decides as recorded; empty: a default does; None: they do not."""
        question = recorded.question
        if question.name is None:
            return self._decide_by_type(recorded, held)
        allows = [number for number in speaking.allows if number in held]
        denies = [number for number in speaking.denies if number in held]
        if not allows and not denies:
            is_open = self._matcher.rules.allow_everyone_if_no_acl_found
            return () if is_open or not recorded.is_allowed else None
        if recorded.is_allowed is bool(denies):
            return None

        def place(number: int) -> Any:
            return visit_order(self._matcher.bindings[number], question.name or "")

        return (min(denies, key=place) if denies else max(allows, key=place),)

    def _decide_by_type(self, recorded: RecordedDecision, held: frozenset[int]) -> tuple[int, ...] | None:
        bindings, question = self._matcher.bindings, recorded.question
        numbers = sorted(held)
        # ACLs of others or on other operations decide nothing here, but the default ends where they name it
        is_open = self._matcher.rules.allow_everyone_if_no_acl_found and not self._matcher.naming(
            question.resource_type, PROBED_NAME
        )
        authorizer = StandardAuthorizer.of(
            [bindings[number] for number in numbers], allow_everyone_if_no_acl_found=is_open
        )
        session = authorizer.session(KafkaPrincipal.parse(question.principal), question.host)
        decision = session.decide_by_resource_type(question.operation, question.resource_type)
        if decision.allowed is not recorded.is_allowed:
            return None
        rule = decision.rule.binding
        return () if rule is None else tuple(number for number in numbers if bindings[number] == rule)

    def _speaking_of(self, question: Question) -> _Speaking:
        found = self._speaking.get(question)
        if found is None:
            while len(self._speaking) >= QUESTIONS_MAX:
                del self._speaking[next(iter(self._speaking))]
            found = self._speaking[question] = _Speaking(*self._matcher.speaking(question))
        return found

    def _fitting(self, speaking: _Speaking, rule: Mapping[str, str | None]) -> _Speaking:
        """Return the ACLs that have what the rule names; all if none has."""
        known = {name: text for name, text in rule.items() if text is not None}
        if not known:
            return speaking

        def fits(number: int) -> bool:
            texts = texts_of(self._matcher.bindings[number])
            return all(texts[name] == text for name, text in known.items())

        allows, denies = (tuple(filter(fits, some)) for some in speaking)
        return _Speaking(allows, denies) if allows or denies else speaking
