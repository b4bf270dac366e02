"""Each code of lint: what it finds, what it says to do, and what is like it but fine."""

from collections.abc import Sequence
from typing import Any

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.analysis import Rules
from kustos.analysis.lint import LINT_CODES, Finding, Severity, lint, sarif_of
from kustos.cli.acls.arguments import EntryArguments, ResourceArguments, bindings_to_add

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
Op = AclOperation


def acl(
    name: str = "orders",
    pattern_type: PatternType = LITERAL,
    *,
    kind: ResourceType = TOPIC,
    who: str = "User:alice",
    host: str = "*",
    op: AclOperation = Op.READ,
    says: AclPermissionType = ALLOW,
) -> AclBinding:
    return AclBinding(ResourcePattern(kind, name, pattern_type), AccessControlEntry(who, host, op, says))


def cluster(**fields: Any) -> AclBinding:
    return acl(fields.pop("name", "kafka-cluster"), kind=CLUSTER, **fields)


Found = list[tuple[str, int, str]]
CASES: dict[str, tuple[list[AclBinding], Found]] = {
    "nothing": ([acl(), acl(op=Op.WRITE), acl("pay-", PREFIXED), acl(kind=GROUP)], []),
    "duplicate": ([acl(), acl(op=Op.WRITE), acl()], [("KUS001", 2, "remove one")]),
    "conflicting": ([acl(), acl(says=DENY)], [("KUS002", 0, "remove the unintended one")]),
    "shadowed": (
        [acl(), acl("ord", PREFIXED, who="User:*", op=Op.ALL, says=DENY), acl("other", who="User:bob")],
        [("KUS003", 0, "remove it, or the DENY")],
    ),
    "shadowed by two": (
        [acl(op=Op.WRITE), acl(op=Op.WRITE, who="User:*", says=DENY), acl(op=Op.DESCRIBE, says=DENY)],
        [("KUS003", 0, "remove it")],
    ),
    "implied": ([acl(), acl(op=Op.DESCRIBE, host="10.0.0.1")], [("KUS004", 1, "remove it")]),
    "implied and said": ([acl(), acl(op=Op.DESCRIBE), acl("t", op=Op.ALTER), acl("t", op=Op.DESCRIBE)], []),
    "implied, said and denied": (
        [acl(), acl(op=Op.DESCRIBE), acl(who="User:*", op=Op.DESCRIBE, says=DENY)],
        [("KUS003", 1, "remove it, or the DENY")],
    ),
    "by prefix and range": (
        [
            acl(host="10.0.0.0/8"),
            acl(host="10.1.0.0/16"),
            acl("ord", PREFIXED, who="User:b"),
            acl(who="User:b"),
        ],
        [("KUS004", 1, "remove it"), ("KUS004", 3, "remove it")],
    ),
    "by two halves": (
        [acl(host="10.0.0.0/9"), acl(host="10.128.0.0/9"), acl(host="10.0.0.0/8")],
        [("KUS004", 0, "remove it"), ("KUS004", 1, "remove it"), ("KUS004", 2, "remove it")],
    ),
    "a deny of more": (
        [acl("*", op=Op.WRITE), acl(op=Op.ALL, says=DENY), acl(op=Op.WRITE, says=DENY)],
        [("KUS004", 2, "remove it")],
    ),
    "idle": ([acl(says=DENY), acl(who="User:bob")], [("KUS005", 0, "unless it guards")]),
    "super user": ([acl(who="User:root")], [("KUS006", 0, "remove the principal from `super.users`")]),
    "describe stays": (
        [acl(op=Op.WRITE), acl(says=DENY)],
        [("KUS005", 1, "guards")],
    ),
    "describe stays beside": (
        [acl(op=Op.WRITE), acl("ord", PREFIXED), acl(says=DENY)],
        [("KUS007", 2, "deny ALL or DESCRIBE too")],
    ),
    "describe denied too": (
        [acl(op=Op.WRITE), acl("ord", PREFIXED), acl(says=DENY), acl(op=Op.DESCRIBE, says=DENY)],
        [],
    ),
    "everyone everywhere": (
        [acl("*", who="User:*"), acl("*", who="User:*", kind=GROUP, op=Op.DESCRIBE)],
        [("KUS101", 0, "name principals")],
    ),
    "everyone on the cluster": ([cluster(who="User:*", op=Op.ALTER)], [("KUS101", 0, "name principals")]),
    "everyone idempotent": ([cluster(who="User:*", op=Op.IDEMPOTENT_WRITE)], []),
    "everyone": ([acl(who="User:*"), acl("x", who="User:*", op=Op.DESCRIBE)], [("KUS102", 0, "name the")]),
    "like a super user": (
        [
            acl("*", op=Op.ALL),
            cluster(op=Op.ALTER),
            cluster(op=Op.DESCRIBE, who="User:c"),
            acl("*", who="User:b"),
        ],
        [("KUS103", 0, "that are needed"), ("KUS103", 1, "that are needed")],
    ),
    "meaningless": (
        [acl(op=Op.CLUSTER_ACTION), acl("g", kind=GROUP, op=Op.WRITE), acl("g2", kind=GROUP, op=Op.ALL)],
        [("KUS201", 0, "use READ, WRITE"), ("KUS201", 1, "use READ, DESCRIBE")],
    ),
    "cluster name": (
        [cluster(name="my-cluster", op=Op.DESCRIBE), cluster(name="*", op=Op.CREATE)],
        [("KUS202", 0, "write `kafka-cluster`"), ("KUS202", 1, "write `kafka-cluster`")],
    ),
    "asterisk": (
        [acl("pay-*"), acl("pay-*", PREFIXED, who="User:b"), acl("*", PREFIXED), acl("*x", kind=GROUP)],
        [
            ("KUS203", 0, "write `pay-` as PREFIXED"),
            ("KUS203", 1, "write `pay-` as PREFIXED"),
            ("KUS203", 2, "write `*` as LITERAL"),
            ("KUS203", 3, "write the names"),
        ],
    ),
    "impossible topic": (
        [
            acl("a b"),
            acl(".."),
            acl("..", PREFIXED, who="User:b"),
            acl("x" * 250),
            acl("é"),
            acl("a b", kind=GROUP),
        ],
        [("KUS204", number, "correct the name") for number in (0, 1, 3, 4)],
    ),
    "hangs Kafka": (
        [
            acl("#abc", kind=GROUP),
            acl("#", kind=GROUP),
            acl("(x", PREFIXED, kind=GROUP),
            acl("+ab", kind=GROUP),
        ],
        [("KUS205", 0, "remove the ACL"), ("KUS205", 2, "remove the ACL")],
    ),
    "no name": ([acl("")], [("KUS206", 0, "give a name")]),
    "blanks": ([acl("g ", kind=GROUP)], [("KUS207", 0, "write `g`")]),
    "missing": (
        [acl("gone"), acl("*"), acl("ord", PREFIXED, op=Op.WRITE), acl("g", kind=GROUP), acl("z", PREFIXED)],
        [("KUS004", 0, "remove"), ("KUS208", 0, "remove it"), ("KUS004", 4, ""), ("KUS208", 4, "the prefix")],
    ),
    "range": (
        [acl(host="10.0.0.1/8"), acl(host="2001:db8::1/32"), acl(host="10.0.0.0/8", op=Op.WRITE)],
        [("KUS302", 0, "write `10.0.0.0/8`"), ("KUS302", 1, "write `2001:db8::/32`")],
    ),
    "family": (
        [acl(host="0.0.0.0/0"), acl(host="::/0")],
        [("KUS303", 0, "write `*` if IPv6"), ("KUS303", 1, "write `*` if IPv4")],
    ),
    "principals": (
        [
            acl(who=who)
            for who in ("Group:*", "User:pay-*", "User:b ", " User:b", "user:b", "Group:a", "User:")
        ],
        [
            ("KUS401", 0, "write `User:*` for everyone"),
            ("KUS404", 0, "check"),
            ("KUS401", 1, "write `User:*` for everyone"),
            ("KUS402", 2, "write `User:b`"),
            ("KUS402", 3, "write `User:b`"),
            ("KUS403", 4, "write `User:b`"),
            ("KUS404", 5, "check"),
            ("KUS405", 6, "give the name"),
        ],
    ),
    "no type": ([acl(who="bob")], [("KUS406", 0, "write `User:bob`")]),
    "unknown": (
        [acl(op=Op.UNKNOWN), acl("x", PatternType.UNKNOWN), acl(says=AclPermissionType.UNKNOWN)],
        [("KUS501", 0, "use a version"), ("KUS501", 1, "use a version"), ("KUS501", 2, "use a version")],
    ),
}
HOSTS = {
    "::1": "write `0:0:0:0:0:0:0:1`",
    "FE80::1%eth0": "write `fe80:0:0:0:0:0:0:1%eth0`",
    "[::1]": "write `0:0:0:0:0:0:0:1`",
    "::ffff:10.0.0.1": "write `10.0.0.1`",
    "010.0.0.1": "write `10.0.0.1`",
    " 10.0.0.1": "write `10.0.0.1`",
    "localhost": "write the address",
    "10.0.0.*": "write a range",
    "10.0.0.1-10.0.0.9": "write a range",
    "10.0.0.0/33": "write it as `10.0.0.0/8`",
    "10.0.0/8": "write it as `10.0.0.0/8`",
    "host/8": "write it as `10.0.0.0/8`",
    "::ffff:10.0.0.0/104": "write `10.0.0.0/8`",
    "0.0.0.0/32": "write `0.0.0.0`",
    "": "write `*`",
}
LISTING = {TOPIC: frozenset({"orders", "payments"})}
RULES = Rules(super_users=frozenset({"User:root"}))


def found_in(acls: Sequence[AclBinding], *, listed: bool = False) -> list[Finding]:
    return lint(acls, RULES, LISTING if listed else None)


@pytest.mark.parametrize("case", CASES)
def test_a_set_has_these_findings(case: str) -> None:
    acls, expected = CASES[case]
    found = found_in(acls, listed=case == "missing")
    assert [(each.code, each.number) for each in found] == [(code, at) for code, at, _ in expected]
    for finding, (_, _, fix) in zip(found, expected, strict=True):
        assert fix in finding.fix
        for text in (finding.message, finding.fix):
            assert text
            assert not text.endswith(".")


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_that_no_client_has_comes_with_what_was_meant(host: str) -> None:
    (finding,) = found_in([acl(host=host)])
    assert finding.code == "KUS301"
    assert HOSTS[host] in finding.fix


@pytest.mark.parametrize(
    "host", ["*", "10.0.0.1", "0:0:0:0:0:0:0:1", "fe80:0:0:0:0:0:0:1%eth0", "10.0.0.0/8"]
)
def test_a_host_that_a_client_can_have_is_fine(host: str) -> None:
    assert found_in([acl(host=host)]) == []


def test_every_code_has_a_case() -> None:
    codes = {code for _, expected in CASES.values() for code, _, _ in expected}
    assert codes | {"KUS301"} == set(LINT_CODES)
    assert len({kind.name for kind in LINT_CODES.values()} - {"asterisk-in-name"}) == len(LINT_CODES) - 1


@pytest.mark.parametrize("pattern_type", [LITERAL, PREFIXED])
@pytest.mark.parametrize(
    "bundle",
    [
        {"producer": True},
        {"producer": True, "idempotent": True},
        {"consumer": True},
        {"producer": True, "consumer": True},
    ],
    ids=str,
)
def test_what_acls_add_makes_by_itself_is_not_found_fault_with(
    bundle: dict[str, Any], pattern_type: PatternType
) -> None:
    resources = ResourceArguments(
        topics=["orders"],
        groups=["g"],
        transactional_ids=["tx"] if "producer" in bundle else [],
        pattern_type=pattern_type,
    )
    made = bindings_to_add(resources, EntryArguments(allow_principals=["User:alice"], **bundle))
    assert len(made) >= 2
    assert lint(made) == []


def test_what_is_said_names_the_acl_that_says_it() -> None:
    acls = [acl(op=Op.DESCRIBE), acl("ord", PREFIXED), acl(says=DENY, who="User:b"), acl(who="User:b")]
    related = {finding.code: finding.related for finding in found_in(acls)}
    assert related == {"KUS004": (1,), "KUS002": (2,)}


def test_with_default_allow_an_acl_that_takes_it_away_matters() -> None:
    open_rules = Rules(allow_everyone_if_no_acl_found=True)
    assert [each.code for each in lint([acl(says=DENY)], Rules())] == ["KUS005"]
    assert lint([acl(says=DENY)], open_rules) == []


def test_with_default_allow_the_only_acl_on_a_name_is_no_idle_one_of_a_super_user() -> None:
    rules = Rules(super_users=frozenset({"User:root"}), allow_everyone_if_no_acl_found=True)
    only, beside = acl(who="User:root"), acl(who="User:root", op=Op.WRITE)
    (found,) = lint([only], rules)
    assert (found.code, found.fix.partition(",")[0]) == (
        "KUS006", "first add an ACL of another principal on the same pattern",
    )  # fmt: skip
    assert "open to everyone" in found.message
    for acls in ([only, beside], [only, acl("ord", PREFIXED, who="User:bob", op=Op.WRITE)]):
        assert lint(acls, rules)[0].fix.startswith("remove the ACL")


def test_findings_are_sorted_by_acl_and_the_worst_comes_first() -> None:
    found = found_in([acl("x-*", who="Group:*", host="::1", op=Op.CLUSTER_ACTION)])
    severities = [finding.severity for finding in found]
    assert severities == sorted(severities, key=list(Severity).index)
    assert len(found) == 5


def test_sarif_has_the_required_shape() -> None:
    acls = [acl(), acl(op=Op.DESCRIBE, host="10.0.0.1"), acl("x-*"), acl("x-*")]
    found = found_in(acls)
    log = sarif_of(found, acls, lambda number: None if number == 2 else ("acls.yaml", number * 7 + 1), "1.2")
    assert log["version"] == "2.1.0"
    assert "sarif" in log["$schema"]
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("kustos", "1.2")
    assert [rule["id"] for rule in driver["rules"]] == list(LINT_CODES)
    for rule in driver["rules"]:
        assert rule["defaultConfiguration"]["level"] in {"error", "warning", "note"}
        assert all(rule[key]["text"] for key in ("shortDescription", "fullDescription", "help"))
    assert len(run["results"]) == len(found) == 3
    for result, finding in zip(run["results"], found, strict=True):
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == finding.code
        assert result["level"] == finding.severity
        assert result["message"]["text"]
        assert len(result["partialFingerprints"]["kustosAcl/v1"]) == 32
        assert ("locations" in result) is (finding.number != 2)
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "acls.yaml"}, "region": {"startLine": 8}}
    related = run["results"][0]["relatedLocations"][0]
    assert related["physicalLocation"]["region"]["startLine"] == 1
