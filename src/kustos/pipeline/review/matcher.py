"""Which ACLs match a recorded question, and which of them its decision rests on. Pure Python, no Spark.

The cells of the authorizer's own index give the matching ACLs; no other rules decide here. From them follows
what a decision *rests* on: sets of ACLs of which one must stay, or the decision may change.

1. allowed by ACLs: one of the ALLOWs that match must stay
2. denied by DENYs, and some ALLOW matches: one of the DENYs that match must stay
3. denied with `allow.everyone.if.no.acl.found`, and no ALLOW matches: one of the ACLs that name the resource,
   for any principal, must stay
4. everything else rests on nothing: a super user's decision, a default, a denial that no removal changes

A set of one means exactly that the decision changes without that ACL. Of a larger set any one may be removed,
but never all; a decision that would survive even that (ALLOWs removed with DENYs) is ignored, which is the
safe side. For a question about any resource of a type (a null name) the authorizer decides again without each
ACL in turn, since Kafka has other rules for it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple
from uuid import UUID

from kustos.acl import (
    EVERY_PRINCIPAL,
    WILDCARD,
    AclBinding,
    AclOperation,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import ACLS_ALONE, Rules
from kustos.authorizer import Decision, InvalidActionError, RuleKind, StandardAuthorizer
from kustos.authorizer.index import (
    ALLOWS,
    DENIES,
    PROBED_NAME,
    AclIndex,
    PatternCell,
    PrincipalNode,
    binding_mask,
)

RESTING_MAX: Final = 64
"""ACLs that one set names: a cut set is only stricter, since one of the named ACLs must stay."""

DENIES_TRIED_MAX: Final = 1_000
"""DENYs removed in turn for a question by type; with more, each counts as needed."""

NOBODY: Final = "Denied"
"""The basis of a question that nothing allows."""


class Question(NamedTuple):
    """A question to an authorizer; `name` None means any resource of the type."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str | None

    @classmethod
    def of_texts(
        cls,
        principal: str | None,
        host: str | None,
        operation: str | None,
        resource_type: str | None,
        name: str | None,
    ) -> "Question":
        """Return the question of recorded texts; unknown operations and types become UNKNOWN."""
        return cls(
            principal or "",
            host or "",
            AclOperation.__members__.get(operation or "", AclOperation.UNKNOWN),
            ResourceType.__members__.get(resource_type or "", ResourceType.UNKNOWN),
            name,
        )


@dataclass(frozen=True, slots=True)
class Matching:
    """The ACLs, by their positions, that allow or deny a question, and what its decision rests on.

    `basis` is the kind of rule that allows it (Kafka's words), or `Denied`. `needed`: without any one of
    these the decision changes. `resting`: of each of these sets one must stay.
    """

    basis: str
    allows: tuple[int, ...] = ()
    denies: tuple[int, ...] = ()
    needed: tuple[int, ...] = ()
    resting: tuple[tuple[int, ...], ...] = ()


NO_QUESTION: Final = Matching(NOBODY)
"""For an invalid question (an unknown operation, `User:*` as a client): nothing allows it."""


class Matcher:
    """A set of ACLs, identified by their positions in the sequence, indexed for many questions.

    Raises `AclFaultError` for a repeated ACL, or a principal without a type.
    """

    def __init__(self, bindings: Sequence[AclBinding], rules: Rules = ACLS_ALONE) -> None:
        self.bindings: Final = tuple(bindings)
        self.rules: Final = rules
        self._numbers: Final = {binding: number for number, binding in enumerate(self.bindings)}
        self._index: Final = AclIndex(counts_coverage=False)
        self._index.load(self.bindings, 1)

    def matching(self, question: Question) -> Matching:
        """Return the ACLs that match a question and what its decision rests on."""
        if not self._is_valid(question):
            return NO_QUESTION
        if question.principal in self.rules.super_users:
            return Matching(RuleKind.SUPER_USER.value)
        if question.name is None:
            return self._by_type.matching(question)
        return self._named(question, question.name)

    def _named(self, question: Question, name: str) -> Matching:
        allows, denies = self._matching_acls(question, name)
        is_open = self.rules.allow_everyone_if_no_acl_found
        naming = self.naming(question.resource_type, name) if is_open else ()
        if denies:
            resting = denies if allows else naming
            return _resting(NOBODY, allows, denies, resting)
        if allows:
            # if no other ACL names the resource, the default allows it without them
            covers_more = not is_open or len(naming) > RESTING_MAX or not set(naming) <= set(allows)
            return _resting(RuleKind.MATCHING_ACL.value, allows, denies, allows if covers_more else ())
        if is_open and not naming:
            return Matching(RuleKind.DEFAULT_ALLOW.value)
        return _resting(NOBODY, allows, denies, naming)

    def _matching_acls(self, question: Question, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        allowed, denied = ALLOWS[question.operation], DENIES[question.operation]
        allows: list[int] = []
        denies: list[int] = []
        for cell in self._cells(question.principal, question.resource_type, name):
            if not cell.own_mask & (allowed | denied):
                continue
            for binding in cell.bindings_at(question.host):
                mask = binding_mask(binding)
                if mask & allowed:
                    allows.append(self._numbers[binding])
                elif mask & denied:
                    denies.append(self._numbers[binding])
        return tuple(sorted(allows)), tuple(sorted(denies))

    def speaking(self, question: Question) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ACLs that allow and those that deny a question, whoever is a super user.

        For one about any resource of a type: all that have a say for its principal on the type.
        """
        if not self._is_valid(question):
            return (), ()
        if question.name is not None:
            return self._matching_acls(question, question.name)
        return self._by_type.speaking(question)

    def _is_valid(self, question: Question) -> bool:
        """Return whether the authorizer takes a question: no unknown operation, no `User:*` as a client."""
        if question.operation not in ALLOWS or question.resource_type in _NO_TYPES:
            return False
        return question.principal != EVERY_PRINCIPAL and ":" in question.principal

    def _cells(self, principal: str, resource_type: ResourceType, name: str) -> Iterator[PatternCell]:
        for nodes in (self._index.nodes(principal), self._index.every):
            node = nodes.get(resource_type)
            if node is not None:
                yield from _cells_of(node, name)

    def naming(self, resource_type: ResourceType, name: str) -> tuple[int, ...]:
        """Return the ACLs, for any principal, that name a resource: the first RESTING_MAX + 1."""
        return self._naming.of(resource_type, name)

    @cached_property
    def _naming(self) -> "Naming":
        """The ACLs that name a resource, for any principal: with one, allow-by-default does not apply."""
        return Naming([binding.pattern for binding in self.bindings], RESTING_MAX + 1)

    @cached_property
    def _by_type(self) -> "_ByType":
        return _ByType(self)


_NO_TYPES: Final = frozenset({ResourceType.UNKNOWN, ResourceType.ANY})


def _cells_of(node: PrincipalNode, name: str) -> Iterator[PatternCell]:
    literal = node.literals.get(name)
    if literal is not None:
        yield literal
    if node.wildcard is not None and (name[:1] != WILDCARD or name == WILDCARD):
        yield node.wildcard
    if node.prefixes.by_name:
        longest = node.prefixes.longest(name)
        if longest is not None:
            yield from longest.chain()


def _resting(
    basis: str, allows: tuple[int, ...], denies: tuple[int, ...], resting: tuple[int, ...]
) -> Matching:
    needed = resting if len(resting) == 1 else ()
    return Matching(basis, allows, denies, needed, (resting[:RESTING_MAX],) if resting else ())


class Naming:
    """Patterns by name: which of them, by their positions, match one. With `limit`, the first ones."""

    def __init__(self, patterns: Iterable[ResourcePattern], limit: int | None = None) -> None:
        self._limit: Final = limit
        self._literals: dict[tuple[ResourceType, str], list[int]] = {}
        self._prefixes: dict[tuple[ResourceType, str], list[int]] = {}
        lengths: dict[ResourceType, set[int]] = {}
        for number, pattern in enumerate(patterns):
            is_literal = pattern.pattern_type is PatternType.LITERAL
            named = self._literals if is_literal else self._prefixes
            if not is_literal:
                lengths.setdefault(pattern.resource_type, set()).add(len(pattern.name))
            held = named.setdefault((pattern.resource_type, pattern.name), [])
            if limit is None or len(held) < limit:
                held.append(number)
        self._lengths = {kind: sorted(some) for kind, some in lengths.items()}

    def of(self, resource_type: ResourceType, name: str) -> tuple[int, ...]:
        """Return the patterns that match a name."""
        found = list(self._literals.get((resource_type, name), ()))
        if name[:1] != WILDCARD:
            found += self._literals.get((resource_type, WILDCARD), ())
        for length in self._lengths.get(resource_type, ()):
            if length > len(name) or (self._limit is not None and len(found) >= self._limit):
                break
            found += self._prefixes.get((resource_type, name[:length]), ())
        return tuple(sorted(found)[: self._limit])


class _ByType:
    """Questions about any resource of a type, decided by an authorizer without each ACL in turn."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        rules = matcher.rules
        self._authorizer = StandardAuthorizer.of(
            matcher.bindings,
            super_users=rules.super_users,
            allow_everyone_if_no_acl_found=rules.allow_everyone_if_no_acl_found,
        )
        self._speaking: dict[tuple[str, ResourceType], list[int]] = {}
        for number, binding in enumerate(matcher.bindings):
            key = binding.entry.principal, binding.pattern.resource_type
            self._speaking.setdefault(key, []).append(number)

    def matching(self, question: Question) -> Matching:
        """Return one ACL that allows, those without which the decision changes, and what it rests on."""
        try:
            decision = self._decide(question)
        except InvalidActionError:
            return NO_QUESTION
        if decision.rule.kind is RuleKind.DEFAULT_ALLOW:
            return Matching(RuleKind.DEFAULT_ALLOW.value)
        return self._allowed(question, decision) if decision.allowed else self._denied(question)

    def speaking(self, question: Question) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the ACLs that may allow or deny a question by type."""
        allows, denies = ALLOWS[question.operation], DENIES[question.operation]
        return tuple(self._having(question, allows)), tuple(self._having(question, denies))

    def _decide(self, question: Question) -> Decision:
        session = self._authorizer.session(KafkaPrincipal.parse(question.principal), question.host)
        return session.decide_by_resource_type(question.operation, question.resource_type)

    def _allowed(self, question: Question, decision: Decision) -> Matching:
        """Remove each deciding ACL until none allows: one of these must stay."""
        surviving: list[int] = []
        is_open = False
        while decision.allowed and len(surviving) < RESTING_MAX:
            binding = decision.rule.binding
            if binding is None:
                # the default allows now, whatever else is removed
                is_open = True
                break
            number = self._matcher._numbers[binding]
            surviving.append(number)
            self._authorizer.remove_acl(UUID(int=number))
            decision = self._decide(question)
        for number in surviving:
            self._authorizer.add_acl(UUID(int=number), self._matcher.bindings[number])
        resting = () if is_open else tuple(sorted(surviving))
        return _resting(RuleKind.MATCHING_ACL.value, tuple(sorted(surviving)), (), resting)

    def _denied(self, question: Question) -> Matching:
        is_open = self._matcher.rules.allow_everyone_if_no_acl_found
        allows = self._having(question, ALLOWS[question.operation])
        denies = self._having(question, DENIES[question.operation])
        naming = self._matcher.naming(question.resource_type, PROBED_NAME) if is_open else ()
        tried = {*denies, *(naming if len(naming) == 1 else ())}
        if len(denies) > DENIES_TRIED_MAX:
            needed = sorted(tried)
        else:
            needed = [number for number in sorted(tried) if self._flips_without(question, number)]
        # combinations of several DENYs are not tried: where there is an ALLOW, all of them stay
        resting: list[tuple[int, ...]] = [(number,) for number in (denies if allows or is_open else needed)]
        if naming:
            resting.append(naming[:RESTING_MAX])
        return Matching(NOBODY, (), tuple(denies), tuple(needed), tuple(resting))

    def _flips_without(self, question: Question, number: int) -> bool:
        self._authorizer.remove_acl(UUID(int=number))
        is_allowed = self._decide(question).allowed
        self._authorizer.add_acl(UUID(int=number), self._matcher.bindings[number])
        return is_allowed

    def _having(self, question: Question, bit: int) -> list[int]:
        """Return the ACLs for the principal on the type that have this bit, of an ALLOW or of a DENY."""
        return sorted(
            number
            for principal in (question.principal, EVERY_PRINCIPAL)
            for number in self._speaking.get((principal, question.resource_type), ())
            if binding_mask(self._matcher.bindings[number]) & bit
        )
