"""`SimpleAclAuthorizer`: settings, KIP-11's own rules, changes and the file that keeps them."""

import json
from pathlib import Path

import pytest

from kustos.acl import AclOperation, AclPermissionType, KafkaPrincipal, PatternType, ResourceType
from kustos.authorizer import InvalidActionError
from kustos.legacy import (
    DR_WHO,
    KIP_11,
    Acl,
    LegacyFormatError,
    LegacySettingsError,
    MemoryAclStore,
    Resource,
    Session,
    SimpleAclAuthorizer,
    UnsupportedChangeError,
)
from kustos.runtime import FileSystemStorage, StorageLockedError

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
READ, DESCRIBE, ALL = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.ALL
ALICE, EVERYBODY = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "*")
ORDERS = Resource(ResourceType.TOPIC, "orders")
FROM_HOME = Session(ALICE, "10.0.0.1")
READS = Acl.of(ALICE, ALLOW, "*", READ)
SETTINGS_REFUSED: list[tuple[dict[str, object], str]] = [
    ({"super.users": "alice"}, "`super.users`"),
    ({"super.users": "User:a;;User:b"}, "`super.users`"),
    ({"super.users": "User:*"}, "name each super user"),
    ({"allow.everyone.if.no.acl.found": "yes"}, "`allow.everyone.if.no.acl.found` is `yes`"),
    ({"kustos.legacy.rules": "0.9"}, "`kustos.legacy.rules` is `0.9`"),
]


def test_a_resource_without_acls_is_closed_as_in_every_release() -> None:
    assert not SimpleAclAuthorizer(MemoryAclStore()).authorize(FROM_HOME, READ, ORDERS)


def test_under_the_rules_of_kip_11_it_is_open_until_someone_adds_an_acl() -> None:
    draft = SimpleAclAuthorizer(MemoryAclStore(), KIP_11)
    draft.configure({})
    assert draft.authorize(Session(DR_WHO, "10.0.0.1"), READ, ORDERS)
    draft.add_acls([READS], ORDERS)
    assert not draft.authorize(Session(DR_WHO, "10.0.0.1"), READ, ORDERS)
    assert draft.authorize(FROM_HOME, READ, ORDERS)


def test_under_the_rules_of_kip_11_nothing_is_implied_and_only_the_resource_counts() -> None:
    draft = SimpleAclAuthorizer(MemoryAclStore({ORDERS: frozenset({READS})}))
    assert draft.authorize(FROM_HOME, DESCRIBE, ORDERS)
    draft.configure({"kustos.legacy.rules": "kip-11", "allow.everyone.if.no.acl.found": "false"})
    assert not draft.authorize(FROM_HOME, DESCRIBE, ORDERS)
    for around in (
        Resource(ResourceType.TOPIC, "*"),
        Resource(ResourceType.TOPIC, "p", PatternType.PREFIXED),
    ):
        draft.add_acls([READS], around)
    assert not draft.authorize(FROM_HOME, READ, Resource(ResourceType.TOPIC, "payments"))


def test_deny_comes_first_even_where_everybody_may_do_all() -> None:
    acls = {Acl.of(EVERYBODY, ALLOW, "*", ALL), Acl.of(ALICE, DENY, "10.0.0.1", READ)}
    for rules in ("released", "kip-11"):
        authorizer = SimpleAclAuthorizer(MemoryAclStore({ORDERS: frozenset(acls)}))
        authorizer.configure({"kustos.legacy.rules": rules})
        assert not authorizer.authorize(FROM_HOME, READ, ORDERS)
        assert authorizer.authorize(Session(ALICE, "10.0.0.2"), READ, ORDERS)


def test_a_set_of_hosts_and_operations_allows_each_from_each() -> None:
    acl = Acl(ALICE, ALLOW, frozenset({"10.0.0.1", "10.0.0.2"}), frozenset({READ, DESCRIBE}))
    authorizer = SimpleAclAuthorizer(MemoryAclStore())
    authorizer.add_acls([acl], ORDERS)
    assert authorizer.get_acls(ORDERS) == acl.singles()
    asked = [
        (host, operation) for host in ("10.0.0.1", "10.0.0.2", "10.0.0.3") for operation in (READ, DESCRIBE)
    ]
    allowed = [authorizer.authorize(Session(ALICE, host), operation, ORDERS) for host, operation in asked]
    assert allowed == [True] * 4 + [False] * 2


def test_part_of_a_set_can_be_removed() -> None:
    both = Acl(ALICE, ALLOW, frozenset({"10.0.0.1", "10.0.0.2"}), frozenset({READ}))
    authorizer = SimpleAclAuthorizer(MemoryAclStore({ORDERS: frozenset({both})}))
    first = Acl.of(ALICE, ALLOW, "10.0.0.1", READ)
    assert authorizer.remove_acls([first], ORDERS)
    assert not authorizer.remove_acls([first], ORDERS)
    assert authorizer.get_acls(ORDERS) == {Acl.of(ALICE, ALLOW, "10.0.0.2", READ)}


@pytest.mark.parametrize(("settings", "expected"), SETTINGS_REFUSED)
def test_wrong_settings_are_refused_and_leave_the_old_in_force(
    settings: dict[str, object], expected: str
) -> None:
    authorizer = SimpleAclAuthorizer(MemoryAclStore())
    authorizer.configure({"super.users": "User:alice"})
    with pytest.raises(LegacySettingsError) as caught:
        authorizer.configure(settings)
    assert expected in str(caught.value)
    assert authorizer.authorize(FROM_HOME, READ, ORDERS)


@pytest.mark.behaviour("B071")
def test_questions_about_prefixes_and_by_everybody_have_no_answer() -> None:
    authorizer = SimpleAclAuthorizer(MemoryAclStore())
    with pytest.raises(InvalidActionError):
        authorizer.authorize(FROM_HOME, READ, Resource(ResourceType.TOPIC, "o", PatternType.PREFIXED))
    with pytest.raises(InvalidActionError):
        authorizer.authorize(Session(EVERYBODY, "10.0.0.1"), READ, ORDERS)


def test_acls_of_a_resource_without_a_name_are_not_kept() -> None:
    authorizer = SimpleAclAuthorizer(MemoryAclStore())
    with pytest.raises(UnsupportedChangeError):
        authorizer.add_acls([READS], Resource(ResourceType.TOPIC, ""))
    with pytest.raises(LegacyFormatError, match="a prefix is empty"):
        Resource(ResourceType.TOPIC, "", PatternType.PREFIXED)
    with pytest.raises(LegacySettingsError, match="before it is configured"):
        SimpleAclAuthorizer().add_acls([READS], ORDERS)
    with pytest.raises(TypeError):
        authorizer.remove_acls([READS])  # type: ignore[call-overload]


def configured(path: Path) -> SimpleAclAuthorizer:
    authorizer = SimpleAclAuthorizer()
    authorizer.configure({"kustos.legacy.acl.file": str(path)})
    return authorizer


def test_the_file_keeps_acls_over_restarts_in_zookeepers_form(tmp_path: Path) -> None:
    path = tmp_path / "acls.json"
    configured(path).add_acls([READS], ORDERS)
    assert json.loads(path.read_text()) == {
        "/kafka-acl/Topic/orders": {
            "version": 1,
            "acls": [
                {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
            ],
        }
    }
    again = configured(path)
    assert again.authorize(FROM_HOME, READ, ORDERS)
    assert again.remove_acls(ORDERS)
    assert configured(path).get_acls() == {}


def test_two_authorizers_of_one_file_lose_nothing_of_each_other(tmp_path: Path) -> None:
    one, other = configured(tmp_path / "acls.json"), configured(tmp_path / "acls.json")
    one.add_acls([READS], ORDERS)
    other.add_acls([Acl.of(ALICE, DENY, "*", READ)], ORDERS)
    assert len(configured(tmp_path / "acls.json").get_acls(ORDERS)) == 2


def test_a_change_that_cannot_be_written_is_not_in_force(tmp_path: Path) -> None:
    path = tmp_path / "acls.json"
    authorizer = configured(path)
    lock = FileSystemStorage().lock(path.with_name("acls.json.lock"))
    with pytest.raises(StorageLockedError):
        authorizer.add_acls([READS], ORDERS)
    lock.release()
    assert authorizer.get_acls() == {}
    path.mkdir()
    with pytest.raises(LegacySettingsError, match="cannot read"):
        authorizer.add_acls([READS], ORDERS)
    assert not authorizer.authorize(FROM_HOME, READ, ORDERS)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"/kafka-acl/Topic/o": {"version": 2, "acls": []}}'])
def test_a_file_that_is_not_understood_stops_the_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "acls.json"
    path.write_bytes(content)
    with pytest.raises(LegacySettingsError, match=r"acls\.json"):
        configured(path)
    with pytest.raises(LegacySettingsError, match=r"`kustos\.legacy\.acl\.file` is not set"):
        SimpleAclAuthorizer().configure({})
