"""Delegation tokens from end to end: Kafka's tool makes them at kustos, Kafka's clients log in with them."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka.cimpl import NewTopic

from testkit.guarded.cluster import Op, Type, acl
from testkit.kafka import KafkaNode, KafkaTools, ToolResult, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until

KEY = "the-token-s3cret"
USERS = {name: f"{name}-secret" for name in ("admin", "alice", "bob", "carol")}
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@dataclass(frozen=True)
class Token:
    """A row of what the tool prints."""

    token_id: str
    hmac: str
    owner: str
    requester: str
    renewers: str


def tokens_in(text: str) -> list[Token]:
    rows = [line.split() for line in text.splitlines()]
    heads = [number for number, row in enumerate(rows) if row[:2] == ["TOKENID", "HMAC"]]
    return [Token(*row[:5]) for row in rows[heads[-1] + 1 :] if len(row) > 5] if heads else []


@dataclass(frozen=True)
class Stage:
    """kustos before a broker, with a user who owns a topic and one who may make tokens for her."""

    node: KustosNode
    tools: KafkaTools

    def login(self, name: str, password: str, mechanism: str, *, token: bool = False) -> dict[str, str]:
        mark = ' tokenauth="true"' if token else ""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{SCRAM} username="{name}" password="{password}"{mark};',
        }

    def tool(
        self, login: dict[str, str], *arguments: str, name: str = "DelegationTokenCommand"
    ) -> ToolResult:
        return self.tools.run(
            name, "--bootstrap-server", self.node.bootstrap, *arguments, client_properties=login
        )

    def tokens(self, user: str, *arguments: str) -> ToolResult:
        return self.tool(self.login(user, USERS[user], "SCRAM-SHA-256"), *arguments)

    def made_by(self, user: str, *arguments: str) -> Token:
        said = self.tokens(user, "--create", "--max-life-time-period", "-1", *arguments).require()
        (token,) = tokens_in(said)
        return token

    def topics_seen_with(self, token: Token, mechanism: str = "SCRAM-SHA-512") -> ToolResult:
        login = self.login(token.token_id, token.hmac, mechanism, token=True)
        return self.tool(login, "--list", name="TopicCommand")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, kafka_tools: KafkaTools) -> Iterator[Stage]:
    settings = KustosSettings(
        users=USERS,
        acls=(
            acl("alice", Op.READ, Type.TOPIC, "orders"),
            acl("bob", Op.READ, Type.TOPIC, "invoices"),
            acl("bob", Op.CREATE_TOKENS, Type.USER, "User:alice"),
            acl("carol", Op.DESCRIBE_TOKENS, Type.USER, "User:alice"),
        ),
        properties={
            "delegation.token.secret.key": KEY,
            "delegation.token.expiry.check.interval.ms": "100",
        },
    )
    with KafkaNode(tmp_path_factory.mktemp("kafka")) as upstream:
        make_topics([upstream], NewTopic("orders", 1, 1), NewTopic("invoices", 1, 1))
        with KustosNode(tmp_path_factory.mktemp("kustos"), upstream.bootstrap, settings) as node:
            yield Stage(node, kafka_tools)


@pytest.mark.behaviour("B199", "B203", "B204", "B222", "B354")
def test_a_token_acts_as_its_owner_until_it_is_ended(stage: Stage) -> None:
    token = stage.made_by("bob", "--owner-principal", "User:alice", "--renewer-principal", "User:bob")
    assert (token.owner, token.requester, token.renewers) == ("User:alice", "User:bob", "[User:bob]")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        assert stage.topics_seen_with(token, mechanism).require().split() == ["orders"]
    described = ("--describe", "--owner-principal", "User:alice")
    assert tokens_in(stage.tokens("carol", *described).require()) == [token]
    # the holder of a token makes no other
    login = stage.login(token.token_id, token.hmac, "SCRAM-SHA-512", token=True)
    refused = stage.tool(login, "--create", "--max-life-time-period", "-1")
    assert refused.exit_code != 0
    assert "Delegation Token requests are not allowed" in refused.stdout + refused.stderr
    denied = stage.tokens(
        "carol", "--create", "--max-life-time-period", "-1", "--owner-principal", "User:alice"
    )
    assert "DelegationTokenAuthorizationException" in denied.stdout + denied.stderr
    assert (
        "renew"
        in stage.tokens("bob", "--renew", "--renew-time-period", "60000", "--hmac", token.hmac).require()
    )
    stage.tokens("alice", "--expire", "--expiry-time-period", "-1", "--hmac", token.hmac).require()
    late = stage.topics_seen_with(token)
    assert late.exit_code != 0
    assert "SaslAuthenticationException" in late.stdout + late.stderr
    assert tokens_in(stage.tokens("carol", *described).require()) == []


def test_an_expired_token_is_refused_and_swept(stage: Stage) -> None:
    token = stage.made_by("alice")
    stage.tokens("alice", "--expire", "--expiry-time-period", "0", "--hmac", token.hmac).require()
    late = stage.topics_seen_with(token)
    assert "SaslAuthenticationException" in late.stdout + late.stderr

    def is_gone() -> bool:
        described = stage.tokens("alice", "--describe", "--owner-principal", "User:alice")
        return tokens_in(described.require()) == []

    wait_until(is_gone, what="the token is swept")


@pytest.mark.behaviour("B070")
def test_neither_secret_nor_tokens_are_in_logs_or_audit(stage: Stage) -> None:
    def flagged() -> list[str]:
        return [each["principal_name"] for each in stage.node.audit_events() if each["token_authenticated"]]

    before = len(flagged())
    token = stage.made_by("alice")
    assert stage.topics_seen_with(token).require().split() == ["orders"]
    wait_until(lambda: len(flagged()) > before, what="what the token was used for is in the audit log")
    assert set(flagged()) == {"alice"}
    texts = [stage.node.directory / "kustos.log", *stage.node.audit_directory.rglob("*")]
    for path in texts:
        if path.is_file():
            data = path.read_text()
            assert KEY not in data
            assert token.hmac not in data
