"""Strategies and exhaustive probes for `kustos.analysis`: small sets, one question of every class.

The probes are independent of the code under test: a name for each pattern and one right under it, the
addresses at, before and after each end of a range, each principal and one that no entry names.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from hypothesis import strategies as st

from kustos.acl import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import Probe, Rules
from kustos.authorizer import StandardAuthorizer

OPERATIONS = [operation for operation in AclOperation if operation > AclOperation.ANY]
FEW = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL]
FEW += [AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS]
TYPES = [ResourceType.TOPIC, ResourceType.GROUP]
FRESH = "~"
"""A character in no pattern."""

names = st.text("ab*", min_size=1, max_size=4) | st.sampled_from(
    ["*", "*", "a", "ab", "b", "\U0010ffff", "a\U0010ffffb"]
)
ELSEWHERE = ["192.168.0.9", "2001:db8:0:0:0:0:0:9", "2001:db8:0:0:0:0:0:9%lo"]
SCOPED = "fe80:0:0:0:0:0:0:1"
CLIENTS_NEAR = {
    "*": ELSEWHERE,
    "10.0.0.1": ["10.0.0.1"],
    "10.0.0.2": ["10.0.0.2"],
    "10.0.0.0/30": ["9.255.255.255", "10.0.0.0", "10.0.0.3", "10.0.0.4"],
    "10.0.0.0/8": ["9.255.255.255", "10.0.0.0", "10.9.9.9", "10.255.255.255", "11.0.0.0"],
    "0.0.0.0/0": ["0.0.0.0", "0.0.0.1", "255.255.255.255", "0:0:0:0:0:0:0:0"],
    "0.0.0.0": ["0.0.0.0", "0.0.0.1"],
    "0.0.0.0/32": ["0.0.0.0"],
    "0:0:0:0:0:0:0:5": ["0:0:0:0:0:0:0:4", "0:0:0:0:0:0:0:5", "0:0:0:0:0:0:0:5%lo", "0:0:0:0:0:0:0:6"],
    "::/0": ["0:0:0:0:0:0:0:0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "255.255.255.255"],
    "::/126": ["0:0:0:0:0:0:0:3", "0:0:0:0:0:0:0:3%lo", "0:0:0:0:0:0:0:4"],
    "::fffe:0:0/95": ["0:0:0:0:0:fffd:ffff:ffff", "0:0:0:0:0:fffe:0:0", "0:0:0:0:1:0:0:0", "10.0.0.5"],
    SCOPED: [SCOPED, f"{SCOPED}%eth0", f"{SCOPED}%eth1"],
    f"{SCOPED}%eth0": [SCOPED, f"{SCOPED}%eth0", f"{SCOPED}%eth1"],
    "fe80::/64": ["fe80:0:0:0:ffff:ffff:ffff:ffff", "fe80:0:0:1:0:0:0:0", "fe80:0:0:0:1:0:0:0%eth0"],
    "::1": ["0:0:0:0:0:0:0:1"],
    "localhost": ["127.0.0.1"],
    "10.0.0.0/33": ["10.0.0.0"],
    "010.0.0.1": ["10.0.0.1"],
    "": [],
}
"""Hosts of entries, each with clients at, before and after its ends."""

CLIENTS = sorted({client for clients in CLIENTS_NEAR.values() for client in clients})
hosts = st.just("*") | st.sampled_from(sorted(CLIENTS_NEAR))
kinds = st.sampled_from([ResourceType.TOPIC] * 4 + [ResourceType.GROUP])
pattern_types = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
permissions = st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY])
principals = st.sampled_from(["User:alice", "User:bob", "User:*", "User:*", "Group:*"])
entries = st.builds(AccessControlEntry, principals, hosts, st.sampled_from(FEW), permissions)
named_bindings = st.builds(AclBinding, st.builds(ResourcePattern, kinds, names, pattern_types), entries)
cluster_patterns = st.builds(
    ResourcePattern,
    st.just(ResourceType.CLUSTER),
    st.sampled_from([CLUSTER_NAME, CLUSTER_NAME, "k", "kafka-", "kafka-cluster-2", "a", "*"]),
    pattern_types,
)
bindings = named_bindings | named_bindings | st.builds(AclBinding, cluster_patterns, entries)
plain_bindings = st.builds(
    AclBinding,
    st.builds(ResourcePattern, st.just(ResourceType.TOPIC), names, pattern_types),
    st.builds(AccessControlEntry, principals, st.just("*"), st.sampled_from(FEW), permissions),
)
acl_sets = st.lists(bindings, max_size=7, unique=True) | st.lists(plain_bindings, max_size=9, unique=True)
rules = st.builds(
    Rules,
    super_users=st.sampled_from([frozenset(), frozenset({"User:root"}), frozenset({"User:bob"})]),
    allow_everyone_if_no_acl_found=st.sampled_from([False, False, True]),
)
subjects = ["User:alice", "User:bob", "User:root", "Group:*", "Group:ops", "User:someone"]

cluster_probes = st.builds(
    Probe,
    st.sampled_from(subjects),
    st.sampled_from(CLIENTS),
    st.sampled_from(OPERATIONS),
    st.just(ResourceType.CLUSTER),
    st.just(CLUSTER_NAME),
)
probes = cluster_probes | st.builds(
    Probe,
    st.sampled_from(subjects),
    st.sampled_from(CLIENTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from(TYPES),
    st.text("ab*~", max_size=5) | st.sampled_from(["", "*", "*~", "**", "\U0010ffff\U0010ffff"]),
)


def authorizer_of(acls: Iterable[AclBinding], rules: Rules) -> StandardAuthorizer:
    return StandardAuthorizer.of(
        dict.fromkeys(acls),
        super_users=rules.super_users,
        allow_everyone_if_no_acl_found=rules.allow_everyone_if_no_acl_found,
    )


def ask(authorizer: StandardAuthorizer, probe: Probe, groups: tuple[str, ...] = ()) -> bool:
    client = replace(KafkaPrincipal.parse(probe.principal), groups=groups)
    session = authorizer.session(client, probe.host)
    return session.decide(probe.operation, probe.resource_type, probe.name).allowed


def names_near(acls: Iterable[AclBinding]) -> list[str]:
    """Return a name of every class that these patterns distinguish, and some more."""
    patterns = {acl.pattern.name for acl in acls}
    near = {"", FRESH, "*", f"*{FRESH}", *patterns, *(f"{name}{FRESH}" for name in patterns)}
    return sorted(near | {name[:-1] for name in patterns})


def hosts_near(acls: Iterable[AclBinding]) -> list[str]:
    """Return a host of every class that these entries distinguish."""
    texts = {acl.entry.host for acl in acls} | {"*"}
    return sorted({client for text in texts for client in CLIENTS_NEAR[text]})


def principals_near(acls: Iterable[AclBinding], rules: Rules) -> list[str]:
    named = {acl.entry.principal for acl in acls} | rules.super_users
    return sorted(named - {"User:*"} | {"User:nobody-names-me"})


def every_probe(acls: list[AclBinding], *some_rules: Rules) -> Iterator[Probe]:
    """Yield one question of every class that sets of these ACLs can distinguish."""
    named = {name for rules in some_rules for name in principals_near(acls, rules)}
    kinds = {acl.pattern.resource_type for acl in acls} | {ResourceType.GROUP}
    for kind in sorted(kinds):
        of_kind = [acl for acl in acls if acl.pattern.resource_type is kind]
        # the cluster has one name, and no request can name another
        near = [CLUSTER_NAME] if kind is ResourceType.CLUSTER else names_near(of_kind)
        for fields in product(sorted(named), hosts_near(of_kind), OPERATIONS, [kind], near):
            yield Probe(*fields)
