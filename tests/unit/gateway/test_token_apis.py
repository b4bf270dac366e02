"""The delegation token APIs from request to answer: guard, authorizer and metadata log, without a socket."""

from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from kustos.acl import AclBinding, AclOperation, KafkaPrincipal, ResourceType
from kustos.authorizer import AuthorizableRequestContext
from kustos.gateway.apis.acls import AclApis
from kustos.gateway.apis.local import MetadataApis
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.apis.shared import SharedApis
from kustos.gateway.store.local import LocalLog
from kustos.gateway.store.writer import MetadataWriter
from kustos.metadata.control import TokenRules
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.directory.format import format_directory
from kustos.metadata.store.store import MetadataStore
from kustos.protocol import Guard, OfferedApis, Opened, Reply, Serve
from testkit.protocol.driver import OFFERED, GatewayAddresses
from testkit.protocol.random_requests import allow
from tests.unit.protocol.protocol_requests import connection, frame

CREATE, RENEW, EXPIRE, DESCRIBE = 38, 39, 40, 41
NOT_ALLOWED, DENIED, BAD_TYPE, DISABLED, NOT_FOUND, MISMATCH, UNKNOWN = 64, 65, 67, 61, 62, 63, -1
ALICE, BOB, CAROL = (KafkaPrincipal("User", name) for name in ("alice", "bob", "carol"))
ANONYMOUS = KafkaPrincipal("User", "ANONYMOUS")
SECRET = TokenSecret(b"s3cret")
NO_TIMES = {"issue_timestamp": -1, "expiry_timestamp": -1, "max_timestamp": -1}


class Node:
    """A metadata log, and requests of any principal; the ACLs belong to `User:alice`."""

    def __init__(self, directory: Path, rules: TokenRules) -> None:
        format_directory(directory)
        self.store = MetadataStore.open(directory, token_rules=rules)
        self.writer = MetadataWriter(self.store)
        acls = AclApis(None, DelayedFuturePurgatory(ALTER_ACLS, 1_000))
        shared = SharedApis(lambda: self.store.image, OfferedApis(dict).body, acls, lambda _: [])
        self.apis = MetadataApis(LocalLog(self.writer), shared)
        self.acls: tuple[AclBinding, ...] = ()
        self.decided: list[tuple[str, str, bool]] = []
        self.listings: set[bool] = set()
        self.ready = True

    async def ask(
        self,
        api_key: int,
        version: int,
        who: KafkaPrincipal = ALICE,
        protocol: str = "SASL_PLAINTEXT",
        **fields: Any,
    ) -> dict[str, Any]:
        driver = connection(*self.acls, ready=self.ready)
        session = driver.authorizer.session(who, "10.0.0.1")
        context = AuthorizableRequestContext(who, "10.0.0.1", "L", protocol)
        opened = Guard(session, lambda _: context, GatewayAddresses(), OFFERED).open(
            frame(api_key, version, **fields)
        )
        assert isinstance(opened, Opened)
        result: Any = None
        end: Any = None
        while end is None:
            try:
                effect = opened.handler.send(result)
            except StopIteration as stop:
                end = stop.value
            else:
                assert isinstance(effect, Serve)
                result = self.apis.serve(opened)
                result = await result if isinstance(result, Awaitable) else result
        assert isinstance(end, Reply)
        self.decided = [
            (each.action.operation.name, each.name or "", each.decision.allowed)
            for each in opened.exchange.decided
        ]
        self.listings = {each.listing for each in opened.exchange.decided}
        assert isinstance(end.content, bytes)
        return opened.exchange.response_codec.decode(end.content).message.to_dict()

    async def create(
        self, who: KafkaPrincipal = ALICE, owner: KafkaPrincipal | None = None, **fields: Any
    ) -> Any:
        given = {"renewers": [], "max_lifetime": -1, **fields}
        if owner is not None:
            given |= {"owner_principal_type": owner.principal_type, "owner_principal_name": owner.name}
        return await self.ask(CREATE, 3, who, **given)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(tmp_path / "log", TokenRules(SECRET))
    yield made
    await made.writer.close()


@pytest.mark.behaviour("B199")
@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_token_is_created_renewed_described_and_expired(node: Node, version: int) -> None:
    renewers = [{"principal_type": "User", "principal_name": "bob"}]
    made = await node.ask(CREATE, version, renewers=renewers, max_lifetime=-1)
    ((token_id, token),) = node.store.image.delegation_tokens.items()
    assert made["error_code"] == 0
    assert (made["token_id"], made["hmac"]) == (token_id, SECRET.hmac(token_id))
    assert (made["issue_timestamp"], made["max_timestamp"]) == (
        token.issue_timestamp_ms,
        token.max_timestamp_ms,
    )
    assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:alice", ("User:bob",))
    assert ("token_requester_principal_name" in made) == (version == 3)
    renewed = await node.ask(RENEW, min(version, 2), BOB, hmac=made["hmac"], renew_period=60_000)
    assert renewed["error_code"] == 0
    assert renewed["expiry_timestamp"] < made["expiry_timestamp"]
    (shown,) = (await node.ask(DESCRIBE, version, BOB, owners=None))["tokens"]
    assert shown["expiry_timestamp"] == renewed["expiry_timestamp"]
    assert (shown["hmac"], shown["renewers"]) == (made["hmac"], renewers)
    assert (shown["issue_timestamp"], shown["max_timestamp"]) == (
        made["issue_timestamp"],
        made["max_timestamp"],
    )
    sooner = await node.ask(EXPIRE, min(version, 2), BOB, hmac=made["hmac"], expiry_time_period=0)
    assert made["issue_timestamp"] <= sooner["expiry_timestamp"] < renewed["expiry_timestamp"]
    assert ("token_requester_principal_name" in shown) == (version == 3)
    for who, code in ((CAROL, MISMATCH), (ALICE, 0), (ALICE, NOT_FOUND)):
        ended = await node.ask(EXPIRE, min(version, 2), who, hmac=made["hmac"], expiry_time_period=-1)
        assert ended["error_code"] == code
        assert (ended["expiry_timestamp"] > 0) == (code == 0)
    assert (await node.ask(DESCRIBE, version, owners=None))["tokens"] == []
    assert node.decided == [], "for oneself no ACL is asked"


@pytest.mark.behaviour("B200")
@pytest.mark.parametrize(
    ("who", "protocol"),
    [
        (ALICE, "PLAINTEXT"),
        (ANONYMOUS, "PLAINTEXT"),
        (ANONYMOUS, "SSL"),
        (KafkaPrincipal("User", "alice", token_authenticated=True), "SASL_SSL"),
        (KafkaPrincipal("User", "alice", token_authenticated=True), "SASL_PLAINTEXT"),
    ],
)
async def test_token_requests_need_an_identity_that_is_not_a_token(
    node: Node, who: KafkaPrincipal, protocol: str
) -> None:
    made = await node.create()
    node.acls = (allow(ResourceType.USER, "*", AclOperation.ALL),)
    asked = {
        "owner_principal_type": "User",
        "owner_principal_name": "bob",
        "renewers": [],
        "max_lifetime": -1,
    }
    refused = await node.ask(CREATE, 3, who, protocol, **asked)
    names = {"principal_name": "bob", "token_requester_principal_name": who.name, "token_id": "", "hmac": b""}
    assert refused.items() >= {"error_code": NOT_ALLOWED, **NO_TIMES, **names}.items()
    for api_key, fields in ((RENEW, {"renew_period": -1}), (EXPIRE, {"expiry_time_period": -1})):
        changed = await node.ask(api_key, 2, who, protocol, hmac=made["hmac"], **fields)
        assert (changed["error_code"], changed["expiry_timestamp"]) == (NOT_ALLOWED, -1)
    shown = await node.ask(DESCRIBE, 3, who, protocol, owners=None)
    assert (shown["error_code"], shown["tokens"]) == (NOT_ALLOWED, [])
    assert node.decided == []
    assert len(node.store.image.delegation_tokens) == 1


@pytest.mark.parametrize(("who", "protocol"), [(ALICE, "SSL"), (ALICE, "SASL_SSL"), (ANONYMOUS, "SASL_SSL")])
async def test_authenticated_clients_may_send_token_requests(
    node: Node, who: KafkaPrincipal, protocol: str
) -> None:
    assert (await node.ask(CREATE, 3, who, protocol, renewers=[], max_lifetime=0))["error_code"] == 0


async def test_a_client_with_groups_creates_no_token_that_would_lose_them(node: Node) -> None:
    who = KafkaPrincipal("User", "alice", groups=("contractors",))
    node.acls = (allow(ResourceType.USER, "*", AclOperation.ALL),)
    for owner in (None, "bob"):
        asked: dict[str, Any] = {"owner_principal_type": owner and "User", "owner_principal_name": owner}
        refused = await node.ask(CREATE, 3, who, renewers=[], max_lifetime=-1, **asked)
        assert refused.items() >= {"error_code": NOT_ALLOWED, "hmac": b""}.items()
    assert len(node.store.image.delegation_tokens) == 0
    made = await node.create()
    renewed = await node.ask(RENEW, 2, who, hmac=made["hmac"], renew_period=-1)
    assert renewed["error_code"] == 0


@pytest.mark.behaviour("B201")
async def test_requests_report_a_missing_secret_key(tmp_path: Path) -> None:
    node = Node(tmp_path / "log", TokenRules())
    assert (await node.create()).items() >= {"error_code": DISABLED, "issue_timestamp": 0}.items()
    assert (await node.ask(RENEW, 2, hmac=b"x", renew_period=-1))["error_code"] == DISABLED
    assert (await node.ask(EXPIRE, 2, hmac=b"x", expiry_time_period=-1))["error_code"] == DISABLED
    nobody_and_all: tuple[Any, ...] = ([], None)
    for owners in nobody_and_all:
        assert (await node.ask(DESCRIBE, 3, owners=owners))["error_code"] == DISABLED
    await node.writer.close()


@pytest.mark.behaviour("B203")
async def test_a_token_for_another_needs_create_tokens_on_the_owner(node: Node) -> None:
    refused = await node.create(owner=BOB)
    assert refused.items() >= {"error_code": DENIED, **NO_TIMES, "principal_name": "bob"}.items()
    assert node.decided == [("CREATE_TOKENS", "User:bob", False)]
    node.acls = (allow(ResourceType.USER, "User:bob", AclOperation.CREATE_TOKENS),)
    assert (await node.create(owner=CAROL))["error_code"] == DENIED
    made = await node.create(owner=BOB)
    assert (
        made.items()
        >= {"error_code": 0, "principal_name": "bob", "token_requester_principal_name": "alice"}.items()
    )
    assert node.decided == [("CREATE_TOKENS", "User:bob", True)]
    (token,) = node.store.image.delegation_tokens.values()
    assert (token.owner, token.requester) == ("User:bob", "User:alice")
    # who asked for it sees it and may not change it
    (shown,) = (await node.ask(DESCRIBE, 3, owners=None))["tokens"]
    assert shown["token_id"] == token.token_id
    assert (await node.ask(RENEW, 2, hmac=made["hmac"], renew_period=-1))["error_code"] == MISMATCH
    (own,) = (await node.ask(DESCRIBE, 3, BOB, owners=None))["tokens"]
    assert own == shown
    assert node.decided == []


async def test_the_renewer_type_is_validated_after_authorization(node: Node) -> None:
    renewers = [{"principal_type": "Group", "principal_name": "g"}]
    assert (await node.create(owner=BOB, renewers=renewers))["error_code"] == DENIED
    assert (await node.create(renewers=renewers)).items() >= {"error_code": BAD_TYPE, **NO_TIMES}.items()


async def test_an_owner_without_a_type_fails_as_in_a_broker(node: Node) -> None:
    fields: dict[str, Any] = {
        "owner_principal_type": None,
        "owner_principal_name": "bob",
        "renewers": [],
        "max_lifetime": -1,
    }
    refused = await node.ask(CREATE, 3, **fields)
    names = {"principal_name": "ANONYMOUS", "token_requester_principal_name": "ANONYMOUS"}
    assert refused.items() >= {"error_code": UNKNOWN, **NO_TIMES, **names}.items()
    node.ready = False
    assert (await node.create(owner=BOB)).items() >= {"error_code": UNKNOWN, **NO_TIMES, **names}.items()
    assert (await node.create())["error_code"] == 0, "a token for oneself needs no right"


@pytest.mark.behaviour("B204")
@pytest.mark.parametrize(
    ("resource", "operation", "sees"),
    [
        (None, None, False),
        ((ResourceType.USER, "User:bob"), AclOperation.DESCRIBE_TOKENS, True),
        ((ResourceType.USER, "User:carol"), AclOperation.DESCRIBE_TOKENS, False),
        ((ResourceType.USER, "User:bob"), AclOperation.CREATE_TOKENS, False),
        ((ResourceType.DELEGATION_TOKEN, "*"), AclOperation.DESCRIBE, True),
        ((ResourceType.DELEGATION_TOKEN, "other"), AclOperation.DESCRIBE, False),
    ],
)
async def test_a_token_is_shown_to_principals_with_describe_on_it_or_its_owner(
    node: Node, resource: tuple[ResourceType, str] | None, operation: AclOperation | None, sees: bool
) -> None:
    made = await node.create(BOB)
    mine = await node.create(ALICE)
    if resource is not None and operation is not None:
        node.acls = (allow(*resource, operation),)
    shown = (await node.ask(DESCRIBE, 3, owners=None))["tokens"]
    assert {token["token_id"] for token in shown} == {mine["token_id"]} | (
        {made["token_id"]} if sees else set()
    )
    of_a_token = ("DESCRIBE", made["token_id"], resource == (ResourceType.DELEGATION_TOKEN, "*"))
    assert node.decided[0] == of_a_token
    assert node.decided[1:] == ([] if of_a_token[2] else [("DESCRIBE_TOKENS", "User:bob", sees)])


async def test_only_requested_tokens_are_examined(node: Node) -> None:
    node.acls = (allow(ResourceType.USER, "*", AclOperation.ALL),)
    await node.create(BOB)
    await node.create(CAROL)
    for names, count in (([], 0), (["bob"], 1), (["bob", "carol"], 2), (["ghost"], 0)):
        owners = [{"principal_type": "User", "principal_name": name} for name in names]
        assert len((await node.ask(DESCRIBE, 3, owners=owners))["tokens"]) == count
        assert len(node.decided) == 2 * count
        assert node.listings <= {False}
    await node.ask(DESCRIBE, 3, owners=None)
    assert node.listings == {True}


async def test_a_failed_write_is_reported(node: Node) -> None:
    await node.writer.close()
    created = await node.create()
    assert (created["error_code"], created["hmac"]) == (UNKNOWN, b"")
    assert {name: created[name] for name in NO_TIMES} == NO_TIMES
    changed = await node.ask(EXPIRE, 2, hmac=b"h", expiry_time_period=-1)
    assert (changed["error_code"], changed["expiry_timestamp"]) == (UNKNOWN, -1)
