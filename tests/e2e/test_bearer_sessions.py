"""Sessions that end with their tokens, several processes, and listeners that believe unsigned tokens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from testkit.identity_provider import IdentityProvider, ProviderSettings
from testkit.kafka import KafkaNode, KafkaTools, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.waiting import wait_until
from tests.e2e.test_bearer_tokens import CLIENTS, LISTENER, MODULE, properties

LIFE_S = 12
"""Long enough to log in on a busy machine, short enough to wait for the end of two."""

RENEWALS = 2
"""Of a client's session, so that it has lived with three tokens."""

RATE = 10
"""Records a second."""

UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityProvider]:
    settings = ProviderSettings(clients=CLIENTS, lifetime_s=LIFE_S, algorithm="ES256")
    with IdentityProvider(tmp_path_factory.mktemp("provider"), settings) as running:
        yield running


def oidc(bootstrap: str, provider: IdentityProvider, client: str = "alice") -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": client,
        "sasl.oauthbearer.client.secret": CLIENTS[client],
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.scope": "kafka",
        "log_level": 0,
    }


@pytest.mark.behaviour("B251", "B252")
@pytest.mark.slow
def test_a_session_outlives_its_token_by_re_authentication(
    tmp_path: Path, kafka: KafkaNode, provider: IdentityProvider
) -> None:
    settings = KustosSettings(super_users=("alice",), properties=properties(provider))
    with KustosNode(tmp_path, kafka.bootstrap, settings) as node:
        admin = AdminClient(oidc(node.bootstrap, provider))

        def tries() -> list[dict[str, Any]]:
            assert admin.list_topics(timeout=60) is not None
            return [event for event in node.security_events() if event["event_type"] == "REAUTHENTICATION"]

        events = wait_until(
            tries,
            holds=lambda found: any(each["result"] == "SUCCESS" for each in found),
            # a client that stood still asks for something when its session and its token have ended
            not_yet=KafkaException,
            what="the session is re-authenticated",
        )
        assert {each["principal_name"] for each in events if each["result"] == "SUCCESS"} == {"alice"}
        assert all("has expired" in each["failure"] for each in events if each["result"] == "FAILURE")


@pytest.mark.slow
def test_every_worker_takes_tokens_and_follows_a_rotation(
    tmp_path: Path, kafka: KafkaNode, provider: IdentityProvider
) -> None:
    more = {"kustos.workers": "2"}
    settings = KustosSettings(super_users=("alice",), properties=properties(provider) | more)
    with KustosNode(tmp_path, kafka.bootstrap, settings) as node:
        config = oidc(node.bootstrap, provider)
        for _ in range(8):
            # the kernel spreads connections over the workers
            assert AdminClient(config).list_topics(timeout=60) is not None
        provider.rotate()
        for _ in range(8):
            assert AdminClient(config).list_topics(timeout=60) is not None


@pytest.mark.behaviour("B241", "B316")
def test_unsigned_tokens_are_believed_only_where_that_is_named(
    tmp_path: Path, kafka: KafkaNode, kafka_tools: KafkaTools
) -> None:
    unsecured = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        LISTENER + "sasl.jaas.config": f'{MODULE} required unsecuredValidatorRequiredScope="LOGIN";',
        LISTENER + "sasl.server.callback.handler.class": UNSECURED,
    }
    settings = KustosSettings(super_users=("tester",), properties=unsecured)
    with KustosNode(tmp_path, kafka.bootstrap, settings) as node:
        assert "every client may log in as any user" in (tmp_path / "kustos.log").read_text()

        def java(scope: str) -> dict[str, str]:
            return {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="tester" '
                f'unsecuredLoginListClaim_scope=",{scope}";',
            }

        arguments = ("--bootstrap-server", node.bootstrap, "--list")
        kafka_tools.run("TopicCommand", *arguments, client_properties=java("LOGIN")).require()
        refused = kafka_tools.run("TopicCommand", *arguments, client_properties=java("OTHER"))
        assert refused.exit_code
        assert '{"status":"insufficient_scope", "scope":"[LOGIN]"}' in refused.stdout + refused.stderr


@pytest.mark.slow
def test_a_client_produces_on_while_tokens_of_its_session_come_and_go(
    tmp_path: Path, kafka: KafkaNode, provider: IdentityProvider
) -> None:
    make_topics([kafka], NewTopic("tokens-come-and-go", 1, 1))
    settings = KustosSettings(super_users=("alice",), properties=properties(provider))
    with KustosNode(tmp_path, kafka.bootstrap, settings) as node:
        errors: list[object] = []
        producer = Producer(oidc(node.bootstrap, provider))

        def renewals() -> int:
            producer.produce("tokens-come-and-go", b"x", on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(60) == 0
            return sum(event["event_type"] == "REAUTHENTICATION" for event in node.security_events())

        wait_until(
            renewals,
            holds=lambda count: count >= RENEWALS,
            pause=lambda _: producer.poll(1 / RATE),
            what="sessions are re-authenticated",
        )
        assert len(errors) > RENEWALS
        assert set(errors) == {None}
