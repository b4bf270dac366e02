"""What an ALLOW entitles to and what DENYs leave of it, against the authorizer asked about every class."""

from hypothesis import event, given, settings
from hypothesis import strategies as st

from kustos.acl import (
    SUPPORTED_OPERATIONS,
    AclBinding,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourceType,
)
from kustos.analysis import Rules
from kustos.analysis.entitlements import (
    Breadth,
    Effect,
    breadth_of,
    entitlements,
    operations_of_grant,
    pattern_holds,
    patterns_meet,
)
from kustos.authorizer import StandardAuthorizer
from testkit.acls.small_sets import named_bindings
from testkit.review_rows import acl

FEW = settings(max_examples=150, deadline=None)
NAMES = ["a", "ab", "abb", "b", "bb", "*", "*a", "**", "a*", "ab*b", "~", "a~", "ab~", "a*~"]
CLIENTS = ["10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3", "192.168.0.9"]
WHO = ["User:alice", "User:bob", "User:carol"]


def allowed(acls: list[AclBinding], operation: AclOperation) -> set[tuple[str, str, str]]:
    """Return who may do this from where on which name."""
    authorizer = StandardAuthorizer.of(acls)
    return {
        (who, host, name)
        for who in WHO
        for host in CLIENTS
        for session in [authorizer.session(KafkaPrincipal.parse(who), host)]
        for name in NAMES
        if session.decide(operation, ResourceType.TOPIC, name).allowed
    }


def test_each_operation_that_a_grant_implies_is_one() -> None:
    found = {
        operation: [each.name for each in operations_of_grant(acl("User:a", operation, "TOPIC", "t"))]
        for operation in ("READ", "WRITE", "DELETE", "ALTER", "ALTER_CONFIGS", "DESCRIBE", "CREATE")
    }
    for operation in ("READ", "WRITE", "DELETE", "ALTER"):
        assert set(found[operation]) == {operation, "DESCRIBE"}
    assert set(found["ALTER_CONFIGS"]) == {"ALTER_CONFIGS", "DESCRIBE_CONFIGS"}
    assert (found["DESCRIBE"], found["CREATE"]) == (["DESCRIBE"], ["CREATE"])
    everything = operations_of_grant(acl("User:a", "ALL", "TOPIC", "t"))
    assert set(everything) == set(SUPPORTED_OPERATIONS[ResourceType.TOPIC])
    assert [each.name for each in operations_of_grant(acl("User:a", "WRITE", "GROUP", "g"))] == ["DESCRIBE"]
    assert [each.name for each in operations_of_grant(acl("User:a", "CREATE", "GROUP", "g"))] == ["CREATE"]


def test_breadth_shows_everyone_and_every_name_apart() -> None:
    assert breadth_of(acl("User:*", "READ", "TOPIC", "logs")) is Breadth.EVERYONE
    assert breadth_of(acl("User:a", "READ", "TOPIC", "*")) is Breadth.WILDCARD
    assert breadth_of(acl("User:a", "READ", "TOPIC", "*", prefixed=True)) is Breadth.PREFIXED
    assert breadth_of(acl("User:a", "READ", "TOPIC", "logs")) is Breadth.NAMED


def told(acls: list[AclBinding], rules: Rules | None = None) -> dict[tuple[int, str], tuple[str, list[int]]]:
    found = entitlements(acls, rules or Rules())
    return {(one.number, one.operation.name): (one.effect.value, list(one.denied_by)) for one in found}


def test_a_deny_is_shown_with_what_it_takes_and_makes_void_what_it_holds() -> None:
    acls = [
        acl("User:*", "ALL", "TOPIC", "pay.", prefixed=True),
        acl("User:bob", "READ", "TOPIC", "pay.in"),
        acl("User:bob", "READ", "TOPIC", "pay.in", deny=True),
        acl("User:*", "DELETE", "TOPIC", "*", deny=True),
        acl("User:eve", "ALL", "TOPIC", "pay.secret", deny=True, host="10.0.0.1"),
    ]
    found = told(acls)
    assert found[0, "READ"] == ("PARTLY_DENIED", [2, 4])
    assert found[0, "DELETE"] == ("VOID", [3, 4])
    assert found[0, "DESCRIBE"] == ("PARTLY_DENIED", [4])
    assert found[1, "READ"] == ("VOID", [2])
    assert found[1, "DESCRIBE"] == ("WHOLE", []), "a DENY of READ leaves what READ implies"
    assert not any(number > 1 for number, _ in found), "a DENY entitles to nothing"
    assert told(acls, Rules(super_users=frozenset({"User:bob"})))[1, "READ"] == ("WHOLE", [])


def test_denies_that_hold_it_together_make_it_void() -> None:
    halves = [
        acl("User:a", "ALL", "TOPIC", "t", host=host, deny=True) for host in ("10.0.0.0/9", "10.128.0.0/9")
    ]
    found = told([acl("User:a", "READ", "TOPIC", "t", host="10.0.0.0/8"), *halves])
    assert found[0, "READ"] == ("VOID", [1, 2])


def test_denies_void_together_what_each_leaves_a_part_of() -> None:
    """Hosts in two halves, a prefix beside a literal, one principal beside everyone; one operation of two."""
    low, high = "10.0.0.0/9", "10.128.0.0/9"
    allow = acl("User:a", "READ", "TOPIC", "pay.in", host="10.0.0.0/8")
    prefix = acl("User:a", "ALL", "TOPIC", "pay", prefixed=True, host=low, deny=True)
    literal = acl("User:*", "READ", "TOPIC", "pay.in", host=high, deny=True)
    found = told([allow, prefix, literal])
    assert found[0, "READ"] == ("VOID", [1, 2])
    assert found[0, "DESCRIBE"] == ("PARTLY_DENIED", [1]), "the ACL as a whole still allows something"

    broad = acl("User:*", "READ", "TOPIC", "p", prefixed=True)
    assert told([broad, prefix, literal])[0, "READ"] == ("PARTLY_DENIED", [1, 2])
    every = [
        acl("User:*", "READ", "TOPIC", "*", host=host, deny=True) for host in ("0.0.0.0/1", "128.0.0.0/1")
    ]
    four = acl("User:a", "READ", "TOPIC", "t", host="10.1.2.3")
    assert told([four, *every])[0, "READ"] == ("VOID", [1])
    anywhere = acl("User:a", "READ", "TOPIC", "t")
    assert told([anywhere, *every])[0, "READ"][0] == "PARTLY_DENIED", "of IPv6 nothing is denied"
    cluster = acl("User:a", "ALTER", "CLUSTER", "kafka", prefixed=True)
    denied = acl("User:*", "ALTER", "CLUSTER", "kafka-cluster", deny=True)
    assert told([cluster, denied])[0, "ALTER"] == ("VOID", [1]), "there is one name of a cluster"


@FEW
@given(one=named_bindings, other=named_bindings)
def test_a_pattern_holds_and_meets_another_as_their_names_do(one: AclBinding, other: AclBinding) -> None:
    def matched(binding: AclBinding) -> set[str]:
        pattern = binding.pattern
        is_literal = pattern.pattern_type is PatternType.LITERAL
        if is_literal and pattern.name == "*":
            return {name for name in names if name[:1] != "*" or name == "*"}
        return {
            name
            for name in names
            if name == pattern.name or (not is_literal and name.startswith(pattern.name))
        }

    names = {*NAMES, *(f"{each.pattern.name}{end}" for each in (one, other) for end in ("", "~"))}
    if one.pattern.resource_type is other.pattern.resource_type:
        assert pattern_holds(one.pattern, other.pattern) == (matched(one) >= matched(other))
        assert patterns_meet(one.pattern, other.pattern) == bool(matched(one) & matched(other))


plain = st.builds(
    acl,
    st.sampled_from([*WHO[:2], "User:*"]),
    st.sampled_from(["READ", "DESCRIBE", "ALL", "DELETE"]),
    st.just("TOPIC"),
    st.sampled_from(["a", "ab", "b", "*", "a*"]),
    prefixed=st.booleans(),
    host=st.sampled_from(["*", "*", "10.0.0.0/30", "10.0.0.0/31", "10.0.0.2/31", "10.0.0.1"]),
    deny=st.sampled_from([False, False, True]),
)


@FEW
@given(acls=st.lists(plain, min_size=1, max_size=8, unique=True))
def test_whole_is_allowed_everywhere_and_void_nowhere(acls: list[AclBinding]) -> None:
    for one in entitlements(acls):
        binding = acls[one.number]
        denies = [each for each in acls if each.entry.permission_type is not AclPermissionType.ALLOW]
        alone, left = allowed([binding], one.operation), allowed([binding, *denies], one.operation)
        event(one.effect.value)
        effect = Effect.WHOLE if left == alone else Effect.PARTLY_DENIED if left else Effect.VOID
        assert one.effect is effect
        assert one.deny_count == len(one.denied_by)
