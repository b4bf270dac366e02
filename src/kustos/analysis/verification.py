"""Verifies that a set of ACLs satisfies a policy, for all questions that a statement covers, not samples."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from kustos.acl import EVERY_PRINCIPAL, AclBinding, KafkaPrincipal
from kustos.analysis.by_host import ByHost, combined
from kustos.analysis.everyone import Answers
from kustos.analysis.host_sets import by_bits
from kustos.analysis.kernel import ACLS_ALONE, NOTHING, AclSet, PrincipalView, Rules, Values
from kustos.analysis.layers import Layer
from kustos.analysis.name_sets import NameSet, Site, Zone
from kustos.analysis.policy import Policy, Statement, StatementKind
from kustos.analysis.regions import PrincipalSet, Probe, Region, operations_of
from kustos.authorizer import Decision, StandardAuthorizer
from kustos.authorizer.index import ALLOWS, EVERY_ALLOW

COUNTER_EXAMPLES_MAX: Final = 10
"""Counter-examples per statement: enough to see the violating principals, few enough to read."""


@dataclass(frozen=True, slots=True)
class CounterExample:
    """One question whose answer violates a statement, with the authorizer's decision and its rule.

    `region` has all such questions of this principal with these operations, hosts and names.
    """

    probe: Probe
    decision: Decision
    region: Region

    def text(self) -> str:
        """Return the question, the decision and the rule, which names the ACL responsible."""
        return f"{self.probe.text()} is {self.decision.result.value.lower()}, by {self.decision.rule}"

    def to_json(self) -> dict[str, Any]:
        """Return the question, `result`, `rule` and the `region`."""
        return {
            "probe": self.probe.to_json(),
            "result": self.decision.result.value,
            "rule": str(self.decision.rule),
            "region": self.region.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a statement holds; `is_cut` if there are more counter-examples."""

    statement: Statement
    counter_examples: tuple[CounterExample, ...] = ()
    is_cut: bool = False

    @property
    def holds(self) -> bool:
        """Whether no question violates the statement."""
        return not self.counter_examples

    def to_json(self) -> dict[str, Any]:
        """Return the statement's `id`, place and sentence, `holds`, `cut` and the counter-examples."""
        statement = self.statement
        return {
            "id": statement.statement_id,
            "file": statement.file,
            "line": statement.line,
            "statement": statement.sentence,
            "reason": statement.reason,
            "holds": self.holds,
            "cut": self.is_cut,
            "counter_examples": [example.to_json() for example in self.counter_examples],
        }


def verify(
    bindings: Iterable[AclBinding],
    policy: Policy,
    rules: Rules = ACLS_ALONE,
    *,
    counter_examples_max: int = COUNTER_EXAMPLES_MAX,
) -> tuple[Verdict, ...]:
    """Return one verdict for each statement, in order.

    A statement holds if and only if no principal, host, operation and name that it covers violates it. A
    violated statement has at least one counter-example and at most `counter_examples_max`: one, with an
    invented name, for all unnamed principals, then one for each principal that violates it in another way.
    """
    acls = AclSet(bindings, rules)
    limit = max(1, counter_examples_max)
    verdicts: list[Verdict] = []
    for statement in policy.statements:
        regions = list(islice(_breaking(acls, statement), limit + 1))
        examples = [_example(acls, statement, region) for region in regions[:limit]]
        verdicts.append(Verdict(statement, tuple(examples), len(regions) > limit))
    return tuple(verdicts)


def _breaking(acls: AclSet, statement: Statement) -> Iterator[Region]:
    """Yield a region that violates a statement, for everyone else and for each violating principal."""
    wanted = sum(ALLOWS[operation] for operation in statement.operations)
    is_never = statement.kind is StatementKind.NEVER

    def broken(allowed: int, is_covered: int) -> int:
        return (allowed if is_never else ~allowed) & wanted if is_covered else 0

    def key_of(values: Values) -> ByHost | None:
        if values[1] == NOTHING:
            return None
        key = combined(values[0], statement.hosts.member, broken)
        return None if key == NOTHING else key

    marking = PrincipalView((Layer.marking(*statement.sites),), is_super=False, is_open=False)
    zone = Zone.of(statement.sites)
    answers = Answers((acls,), statement.resource_type, zone, key_of, (marking,))
    everyones = answers.of_everyone_else()
    named = answers.named
    unnamed = statement.principals.unnamed(named)
    listed = sorted(principal for principal in named if principal in statement.principals)
    if unnamed is not None:
        yield from _regions(unnamed, everyones, statement)
    for principal in listed:
        if principal in acls.rules.super_users and is_never and not statement.counts_super_users:
            continue
        found = answers.of(principal)
        if found is None:
            found = everyones
        if unnamed is None or found != everyones:
            yield from _regions(principal, found, statement)


def _regions(principal: str, found: dict[ByHost, NameSet], statement: Statement) -> Iterator[Region]:
    """Yield one region that violates a statement for a principal, if there is one."""
    for key, names in islice(found.items(), 1):
        bits, hosts = next(by_bits(key, EVERY_ALLOW))
        yield Region(PrincipalSet((principal,)), hosts, operations_of(bits), statement.resource_type, names)


def _example(acls: AclSet, statement: Statement, region: Region) -> CounterExample:
    probe = region.witness()
    resource_type, site = probe.resource_type, Site(probe.name, is_literal=True)
    is_named = (
        acls.coverage(resource_type).matches(site) if acls.rules.allow_everyone_if_no_acl_found else True
    )
    # ACLs of other principals have no effect, except to disable the default
    relevant = (*acls.of(resource_type, probe.principal), *acls.of(resource_type, EVERY_PRINCIPAL))
    authorizer = StandardAuthorizer.of(
        (binding for binding in relevant if Layer.of([binding]).matches(site)),
        super_users=acls.rules.super_users,
        allow_everyone_if_no_acl_found=not is_named,
    )
    session = authorizer.session(KafkaPrincipal.parse(probe.principal), probe.host)
    decision = session.decide(probe.operation, resource_type, probe.name)
    assert decision.allowed is (statement.kind is StatementKind.NEVER), (
        "the kernel and the authorizer disagree"
    )
    return CounterExample(probe, decision, region)
