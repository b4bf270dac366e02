"""The exact texts of the messages of `kustos.legacy`, and its behavior at its limits."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kustos.acl import (
    EVERY_BINDING,
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kustos.authorizer import AuthorizableRequestContext, AuthorizationResult, KafkaApiError
from kustos.legacy import (
    Acl,
    AuthorizerWrapper,
    FileAclStore,
    LegacyFormatError,
    LegacyRefusalError,
    LegacySettingsError,
    MemoryAclStore,
    Resource,
    SimpleAclAuthorizer,
    bindings_of,
    kip_11_principal_of,
    operation_of,
    read_acls,
    single_of,
)
from kustos.legacy.documents import acls_of, entries_of
from kustos.legacy.values import STATEMENTS_PER_ACL_MAX, order_of
from kustos.runtime import FileSystemStorage
from kustos.wire import ErrorCode

TOPIC, READ, WRITE = ResourceType.TOPIC, AclOperation.READ, AclOperation.WRITE
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")
ORDERS, EVERYTHING = Resource(TOPIC, "orders"), Resource(TOPIC, "*")


def report_of(action: Callable[[], object], kind: type[Exception]) -> str:
    with pytest.raises(kind) as raised:
        action()
    return str(raised.value)


class CountingStorage(FileSystemStorage):
    """Counts writes, and refuses to read without a reason where told to."""

    def __init__(self) -> None:
        self.writes = 0
        self.read_error: OSError | None = None

    def read(self, path: Path) -> bytes:
        if self.read_error is not None:
            raise self.read_error
        return super().read(path)

    def write(self, path: Path, data: bytes, mode: int = 0o600) -> None:
        self.writes += 1
        super().write(path, data, mode)


def test_a_file_is_written_once_and_again_only_for_a_change(tmp_path: Path) -> None:
    storage = CountingStorage()
    store = FileAclStore(tmp_path / "acls.json", storage)
    acl = Acl.of(ALICE, ALLOW, "*", READ)
    assert store.update(lambda kept: kept) == {}
    assert (storage.writes, (tmp_path / "acls.json").read_text()) == (1, "{}\n")
    store.update(lambda kept: kept)
    assert storage.writes == 1
    store.update(lambda kept: kept | {ORDERS: frozenset({acl})})
    store.update(lambda kept: kept | {ORDERS: frozenset({acl})})
    assert storage.writes == 2


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path: Path) -> None:
    storage, path = CountingStorage(), tmp_path / "acls.json"
    path.write_text("{}")
    store = FileAclStore(path, storage)
    storage.read_error = OSError(5, "Input/output Error")
    begins = f"cannot read the legacy ACL file `{path}`: "
    assert report_of(store.load, LegacySettingsError) == begins + "input/output error"
    storage.read_error = OSError("no number")
    assert report_of(store.load, LegacySettingsError) == begins + "it is unreadable"


def test_a_value_that_cannot_be_is_told_by_its_name() -> None:
    assert report_of(lambda: Resource(ResourceType.ANY, "a"), LegacyFormatError) == (
        "resource type `ANY` names no kind of resource"
    )
    assert report_of(lambda: Acl.of(ALICE, ALLOW, "*", AclOperation.ANY), LegacyFormatError) == (
        "operation `ANY` names no operation, use ALL for any"
    )
    assert report_of(lambda: operation_of("Fly"), LegacyFormatError).startswith(
        "`Fly` is not an operation, use one of All, Read, Write, Create, Delete,"
    )


def test_an_acl_may_make_as_many_statements_as_the_limit_and_not_one_more() -> None:
    hosts = [f"10.0.{number // 250}.{number % 250}" for number in range(STATEMENTS_PER_ACL_MAX + 1)]
    most = Acl(ALICE, ALLOW, frozenset(hosts[1:]), frozenset({READ}))
    assert len(most.singles()) == STATEMENTS_PER_ACL_MAX
    with pytest.raises(LegacyFormatError, match="more than 10000 statements"):
        Acl(ALICE, ALLOW, frozenset(hosts), frozenset({READ}))


def test_an_acl_that_would_change_its_meaning_is_refused_by_its_resource() -> None:
    ranged = Acl.of(ALICE, ALLOW, "10.0.0.0/8", READ)
    assert "host `10.0.0.0/8` of `Topic:LITERAL:orders` is a range" in report_of(
        lambda: bindings_of(ORDERS, [ranged]), LegacyRefusalError
    )
    nobody = AclBinding(ResourcePattern(TOPIC, "orders"), AccessControlEntry("alice", "*", READ, ALLOW))
    assert "alice" in report_of(lambda: single_of(nobody), LegacyRefusalError)


def test_a_fault_in_a_document_names_the_document() -> None:
    assert report_of(lambda: acls_of([], "`/x`"), LegacyFormatError).startswith("`/x` is not an object with")
    assert report_of(lambda: entries_of({"version": 2, "acls": []}, "`/x`"), LegacyFormatError).startswith(
        "`/x` has"
    )
    assert report_of(lambda: acls_of({"version": 1, "acls": 1}, "`/x`"), LegacyFormatError) == (
        "`acls` of `/x` is not a list"
    )
    assert report_of(lambda: acls_of({"version": 1, "acls": [1]}, "`/x`"), LegacyFormatError) == (
        "ACL 1 of `/x`: an ACL is an object"
    )


@pytest.mark.parametrize("half", ["\\ud800", "\\udbff", "\\udc00", "\\udfff"])
def test_half_a_character_is_no_text(half: str) -> None:
    entry = f'{{"principal":"User:{half}","permissionType":"Allow","operation":"Read","host":"*"}}'
    with pytest.raises(LegacyFormatError, match="`principal` is not a text"):
        read_acls(f'{{"version":1,"acls":[{entry}]}}')


@pytest.mark.parametrize("whole", ["\ud7ff", "\ue000", "\\ud83d\\ude00"])
def test_the_characters_beside_the_halves_are_text(whole: str) -> None:
    entry = f'{{"principal":"User:{whole}","permissionType":"Allow","operation":"Read","host":"*"}}'
    assert len(read_acls(f'{{"version":1,"acls":[{entry}]}}')) == 1


def test_super_users_need_a_type_whatever_their_names() -> None:
    for text in ("X", "X;", "XX;XX"):
        with pytest.raises(LegacySettingsError, match=r"super\.users"):
            SimpleAclAuthorizer(MemoryAclStore()).configure({"super.users": text})


def wrapper(*acls: Acl, everyone: bool = False) -> AuthorizerWrapper:
    authorizer = SimpleAclAuthorizer(MemoryAclStore({EVERYTHING: frozenset(acls)}))
    authorizer.configure({"allow.everyone.if.no.acl.found": str(everyone).lower()})
    return AuthorizerWrapper(authorizer)


def asked(by: AuthorizerWrapper, principal: KafkaPrincipal, host: str, operation: AclOperation) -> bool:
    context = AuthorizableRequestContext(principal, host)
    return by.authorize_by_resource_type(context, operation, TOPIC) is AuthorizationResult.ALLOWED


@pytest.mark.parametrize(
    ("denied", "principal", "host", "operation", "allowed"),
    [
        (Acl.of(ALICE, DENY, "*", READ), ALICE, "10.0.0.1", READ, False),
        (Acl.of(ALICE, DENY, "*", READ), BOB, "10.0.0.1", READ, True),
        (Acl.of(ALICE, DENY, "*", READ), ALICE, "10.0.0.1", WRITE, True),
        (Acl.of(ALICE, DENY, "10.0.0.1", READ), ALICE, "10.0.0.1", READ, False),
        (Acl.of(ALICE, DENY, "10.0.0.2", READ), ALICE, "10.0.0.1", READ, True),
        (Acl.of(KafkaPrincipal("User", "*"), DENY, "*", READ), BOB, "10.0.0.1", READ, False),
        (Acl.of(ALICE, ALLOW, "*", READ), BOB, "10.0.0.1", READ, True),
    ],
)
def test_by_type_a_deny_of_the_operation_on_everything_comes_before_the_default(
    denied: Acl, principal: KafkaPrincipal, host: str, operation: AclOperation, allowed: bool
) -> None:
    assert asked(wrapper(denied, everyone=True), principal, host, operation) is allowed


def test_a_change_that_cannot_be_said_is_answered_with_what_is_wrong() -> None:
    by = wrapper()
    context = AuthorizableRequestContext(ALICE, "10.0.0.1")
    binding = AclBinding(ResourcePattern(TOPIC, "orders"), AccessControlEntry("alice", "*", READ, ALLOW))
    [made] = asyncio.run(by.create_acls(context, [binding]))
    assert made.exception is not None
    assert "alice" in str(made.exception.message)
    for principal, host, what in (("alice", "*", "alice"), ("User:alice", "", "no host")):
        asked_for = AclBindingFilter(
            ResourcePatternFilter(TOPIC, "orders", PatternType.LITERAL),
            AccessControlEntryFilter(principal, host, READ, ALLOW),
        )
        [deleted] = asyncio.run(by.delete_acls(context, [asked_for]))
        assert deleted.exception is not None
        assert deleted.exception.code is ErrorCode.invalid_request
        assert what in str(deleted.exception.message)


def test_a_removal_that_fails_is_answered_with_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    by = wrapper(Acl.of(ALICE, ALLOW, "*", READ))

    def refuse(*_: object) -> bool:
        raise KafkaApiError(ErrorCode.cluster_authorization_failed, "not here")

    monkeypatch.setattr(by.base, "remove_acls", refuse)
    context = AuthorizableRequestContext(ALICE, "10.0.0.1")
    [deleted] = asyncio.run(by.delete_acls(context, [EVERY_BINDING]))
    [told_of] = deleted.acl_binding_delete_results
    assert told_of.exception is not None
    assert (told_of.exception.code, told_of.exception.message) == (
        ErrorCode.cluster_authorization_failed,
        "not here",
    )


def test_acls_are_written_in_one_order_whatever_the_set_was_made_of() -> None:
    acls = [
        Acl(principal, permission, frozenset(hosts), frozenset(operations))
        for principal in (ALICE, BOB)
        for permission in (ALLOW, DENY)
        for hosts in (("a",), ("a", "b"), ("b",))
        for operations in ((READ,), (READ, WRITE), (WRITE,))
    ]
    shown = [
        (str(a.principal), a.permission_type, sorted(map(str, a.operations)), sorted(a.hosts)) for a in acls
    ]
    expected = sorted(
        range(len(acls)),
        key=lambda at: (shown[at][0], "Deny" if shown[at][1] is DENY else "Allow", *shown[at][2:]),
    )
    for order in (acls, acls[::-1]):
        assert sorted(order, key=order_of) == [acls[at] for at in expected]


def test_a_star_alone_is_everybody_in_the_words_of_the_draft() -> None:
    everybody = KafkaPrincipal("User", "*")
    assert [kip_11_principal_of(text) for text in ("*", "*:*", "user:*")] == [everybody] * 3
    assert kip_11_principal_of("a*") == KafkaPrincipal("User", "a*")


def test_what_a_removal_needs_and_what_no_number_may_be_is_said() -> None:
    authorizer = SimpleAclAuthorizer(MemoryAclStore())
    message = report_of(lambda: authorizer.remove_acls([]), TypeError)  # type: ignore[call-overload]
    assert message == "name the resource of the ACLs"
    number = "1" * 5000
    assert report_of(lambda: read_acls(number), LegacyFormatError) == (
        "the document has a number with too many digits"
    )
