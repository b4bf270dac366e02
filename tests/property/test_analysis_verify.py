"""Theorems about `verify`: a statement holds exactly if no question that it covers breaks it."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.acl import AclBinding, AclOperation, ResourceType
from kustos.analysis import Probe, Rules, Verdict, parse_policy, verify
from kustos.authorizer import RuleKind
from testkit.acls.small_sets import acl_sets, ask, authorizer_of, every_probe, rules
from testkit.differential.specification import host_in

TOPIC_OPERATIONS = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS]


@dataclass(frozen=True)
class Demand:
    """A statement in parts, and in the language of policies."""

    is_never: bool
    principals: tuple[str, ...]
    is_everyone_but: bool
    operations: tuple[AclOperation, ...]
    names: tuple[tuple[str, bool], ...]
    hosts: tuple[str, ...]
    is_anywhere_but: bool
    counts_super_users: bool

    def sentence(self) -> str:
        said = "everyone"
        if self.principals:
            said = f"{'anyone but ' if self.is_everyone_but else ''}{', '.join(self.principals)}"
        places = [f"{'under ' if is_prefix else ''}`{name}`" for name, is_prefix in self.names]
        where = f"topics {' and '.join(places)}" if places else "every topic"
        hosts = f" from {'anywhere but ' if self.is_anywhere_but else ''}{' or '.join(self.hosts)}"
        return f"{said} {', '.join(map(str, self.operations))} {where}{hosts if self.hosts else ''}"

    def file(self) -> str:
        supers = "\n    super_users: true" if self.is_never and self.counts_super_users else ""
        kind = "never" if self.is_never else "always"
        return f"version: 1\nstatements:\n  - {kind}: '{self.sentence()}'{supers}\n"

    def speaks_of(self, probe: Probe, some_rules: Rules) -> bool:
        named = any(
            probe.principal.startswith(text[:-1]) if text.endswith("*") else probe.principal == text
            for text in self.principals
        )
        if probe.principal in some_rules.super_users and self.is_never and not self.counts_super_users:
            return False
        return (
            (not self.principals or named is not self.is_everyone_but)
            and probe.operation in self.operations
            and probe.resource_type is ResourceType.TOPIC
            and (
                not self.names
                or any(probe.name == n or (p and probe.name.startswith(n)) for n, p in self.names)
            )
            and (
                not self.hosts or any(host_in(h, probe.host) for h in self.hosts) is not self.is_anywhere_but
            )
        )


demands = st.builds(
    Demand,
    st.booleans(),
    st.lists(
        st.sampled_from(["User:alice", "User:bob", "User:a*", "User:n*", "User:root", "User:quux"]),
        max_size=2,
    ).map(tuple),
    st.booleans(),
    st.lists(st.sampled_from(TOPIC_OPERATIONS), min_size=1, max_size=2).map(tuple),
    st.lists(
        st.tuples(st.text("ab*", min_size=1, max_size=3).filter(lambda name: name != "*"), st.booleans()),
        max_size=2,
    ).map(tuple),
    st.lists(st.sampled_from(["10.0.0.1", "10.0.0.0/8", "::/0", "0.0.0.0/0"]), max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
)


def verdict_on(acls: list[AclBinding], demand: Demand, some_rules: Rules) -> Verdict:
    verdicts = verify(acls, parse_policy(demand.file()), some_rules)
    assert len(verdicts) == 1
    return verdicts[0]


def probed(acls: list[AclBinding], demand: Demand) -> list[AclBinding]:
    """Return the ACLs, and more that add the statement's names, hosts and principals to the probes."""
    some = [acl for acl in acls if acl.pattern.resource_type is ResourceType.TOPIC][:1]
    return acls + [
        AclBinding(
            type(acl.pattern)(ResourceType.TOPIC, name, acl.pattern.pattern_type),
            type(acl.entry)("User:quux", host, acl.entry.operation, acl.entry.permission_type),
        )
        for acl in some
        for name in [*(name for name, _ in demand.names), "~~"]
        for host in [*demand.hosts, "*"]
    ]


@settings(max_examples=100, deadline=None)
@given(acl_sets, demands, rules)
def test_a_statement_holds_exactly_if_exhaustive_probing_cannot_break_it(
    acls: list[AclBinding], demand: Demand, some_rules: Rules
) -> None:
    verdict = verdict_on(acls, demand, some_rules)
    authorizer = authorizer_of(acls, some_rules)
    broken = [
        probe
        for probe in every_probe(probed(acls, demand), some_rules)
        if demand.speaks_of(probe, some_rules) and ask(authorizer, probe) is demand.is_never
    ]
    if broken:
        assert not verdict.holds, broken[0]


@settings(deadline=None)
@given(acl_sets, demands, rules)
def test_every_counter_example_breaks_its_statement(
    acls: list[AclBinding], demand: Demand, some_rules: Rules
) -> None:
    authorizer = authorizer_of(acls, some_rules)
    for example in verdict_on(acls, demand, some_rules).counter_examples:
        assert demand.speaks_of(example.probe, some_rules)
        assert ask(authorizer, example.probe) is demand.is_never is example.decision.allowed
        rule = example.decision.rule
        assert (rule.kind is RuleKind.MATCHING_ACL) is (rule.binding in acls)
        assert example.probe in example.region


@settings(deadline=None)
@given(acl_sets, demands, rules, st.integers(0, 2))
def test_a_limit_on_counter_examples_never_turns_a_verdict(
    acls: list[AclBinding], demand: Demand, some_rules: Rules, limit: int
) -> None:
    policy = parse_policy(demand.file())
    (whole,) = verify(acls, policy, some_rules, counter_examples_max=100)
    (cut,) = verify(acls, policy, some_rules, counter_examples_max=limit)
    assert cut.holds is whole.holds
    assert cut.is_cut is (len(cut.counter_examples) < len(whole.counter_examples))
