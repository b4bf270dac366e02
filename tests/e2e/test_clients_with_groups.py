"""Clients whose groups are in their token or certificate: ACLs of `Group:` principals apply to them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.cimpl import NewTopic
from cryptography import x509

from kustos.acl import AccessControlEntry, AclBinding, AclOperation, AclPermissionType, ResourcePattern
from testkit.certificates import Authority
from testkit.guarded.cluster import PREFIXED, Op, Type
from testkit.identity_provider import IdentityProvider, ProviderSettings
from testkit.kafka import KafkaNode, KafkaTools, make_topics
from testkit.kustos import KustosNode, KustosSettings
from testkit.login_keys import ALLOWED_URLS, MODULES, bearer_keys, pem_keys
from testkit.waiting import wait_until

PREFIX = "groups-"
ORDERS, PII = "groups-orders", "groups-pii"
DENIED = "TOPIC_AUTHORIZATION_FAILED"
SECRET = "a-secret-of-the-provider"
CLAIMS: dict[str, dict[str, object]] = {
    "member": {"realm_access": {"roles": ["team", "other"]}},
    "guest": {"realm_access": {"roles": ["team", "guests"]}},
    "loner": {},
    "odd": {"realm_access": {"roles": ["team", 7]}},
}
LISTENER = "listener.name.sasl_plaintext."
WAIT_S = 60.0


def acl_of(group: str, operation: AclOperation, name: str, permission: AclPermissionType) -> AclBinding:
    entry = AccessControlEntry(f"Group:{group}", "*", operation, permission)
    return AclBinding(ResourcePattern(Type.TOPIC, name, PREFIXED), entry)


ACLS = (
    acl_of("team", Op.WRITE, PREFIX, AclPermissionType.ALLOW),
    acl_of("guests", Op.ALL, PII, AclPermissionType.DENY),
)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IdentityProvider]:
    settings = ProviderSettings(clients=dict.fromkeys(CLAIMS, SECRET), claims=CLAIMS)
    with IdentityProvider(tmp_path_factory.mktemp("provider"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def upstream(kafka: KafkaNode) -> KafkaNode:
    """Return a broker that has the topics."""
    make_topics([kafka], NewTopic(ORDERS, 1, 1), NewTopic(PII, 1, 1))
    return kafka


@pytest.fixture(scope="module", params=["1", "2"], ids=["one process", "two workers"])
def node(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    upstream: KafkaNode,
    provider: IdentityProvider,
) -> Iterator[KustosNode]:
    keys = bearer_keys(provider.jwks_url, provider.settings.audience, provider.issuer)
    properties = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        ALLOWED_URLS: provider.jwks_url,
        "kustos.sasl.oauthbearer.groups.claim.path": "realm_access.roles",
        "kustos.workers": request.param,
    } | {LISTENER + key: value for key, value in keys.items()}
    settings = KustosSettings(acls=ACLS, properties=properties)
    with KustosNode(tmp_path_factory.mktemp("node"), upstream.bootstrap, settings) as running:
        yield running


def by_token(provider: IdentityProvider, client: str) -> dict[str, Any]:
    return {
        "client.id": client,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": client,
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.scope": "kafka",
    }


def produced(node: KustosNode, topic: str, login: dict[str, Any]) -> str | None:
    """Return the error of the records that librdkafka produced."""
    errors: list[str | None] = []
    producer = Producer({"bootstrap.servers": node.bootstrap, "log_level": 0} | login)
    for _ in range(3):
        try:
            producer.produce(
                topic, b"1", on_delivery=lambda e, _: errors.append(None if e is None else e.name())
            )
        except KafkaException as refusal:
            # the producer knows this of the first record
            errors.append(refusal.args[0].name())
        assert producer.flush(WAIT_S) == 0
    [error] = set(errors)
    return error


def test_a_client_may_do_what_its_groups_may_unless_one_of_them_is_denied(
    node: KustosNode, provider: IdentityProvider
) -> None:
    member, guest, loner = (by_token(provider, client) for client in ("member", "guest", "loner"))
    assert produced(node, ORDERS, member) is None
    assert produced(node, PII, member) is None
    assert produced(node, ORDERS, guest) is None
    assert produced(node, PII, guest) == DENIED
    assert produced(node, ORDERS, loner) == DENIED

    def deciding() -> set[tuple[str, str, str | None]]:
        """Return client, topic, and the principal of the deciding ACL; a denied producer sends no record."""
        return {
            (event["principal_name"], event["resource_name"], event["rule"]["principal"])
            for event in node.audit_events()
            if event["operation"] in {"WRITE", "DESCRIBE"} and event["resource_type"] == "TOPIC"
        }

    expected = {
        ("member", ORDERS, "Group:team"),
        ("member", PII, "Group:team"),
        ("guest", ORDERS, "Group:team"),
        ("guest", PII, "Group:guests"),
        ("loner", ORDERS, None),
    }
    wait_until(deciding, holds=expected.__le__, what="the decisions are in the audit log")
    assert deciding() == expected


def test_a_token_whose_groups_cannot_be_used_is_refused(
    node: KustosNode, provider: IdentityProvider, kafka_tools: KafkaTools
) -> None:
    def listed(client: str) -> tuple[int, str]:
        module = f"{MODULES}.oauthbearer.OAuthBearerLoginModule"
        own = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.jaas.config": (
                f'{module} required clientId="{client}" clientSecret="{SECRET}" scope="kafka";'
            ),
            "sasl.login.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        }
        arguments = ("--bootstrap-server", node.bootstrap, "--list")
        done = kafka_tools.run("TopicCommand", *arguments, client_properties=own)
        return done.exit_code, done.stdout + done.stderr

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", f"-D{ALLOWED_URLS}={provider.token_url}")
        exit_code, output = listed("member")
        assert (exit_code, sorted(name for name in output.split() if name.startswith(PREFIX))) == (
            0, [ORDERS, PII],
        )  # fmt: skip
        exit_code, output = listed("odd")
        assert exit_code
        assert '{"status":"invalid_token"}' in output
    failures = {event["failure"] for event in node.security_events() if event["claimed_name"] == "odd"}
    assert failures == {"its claim `realm_access` cannot be used: the groups are not a list of texts"}


def test_a_certificate_has_groups_by_its_units_and_its_spiffe_id(tmp_path: Path, upstream: KafkaNode) -> None:
    authority = Authority()
    trust = authority.write(tmp_path / "authority.pem")
    store = authority.issue("kustos", hosts=["localhost"]).write(tmp_path / "node.pem")
    rules = r"RULE:OU=(.*)/$1/,RULE:URI=spiffe:\\/\\/example.org\\/ns\\/([^\\/]+)\\/.*/$1/"
    properties = pem_keys(store, trust) | {
        "ssl.client.auth": "required",
        "kustos.ssl.group.mapping.rules": rules,
    }
    settings = KustosSettings(acls=ACLS, protocol="SSL", properties=properties)

    def by_certificate(subject: str, *uris: str) -> dict[str, Any]:
        holder = authority.issue(x509.Name.from_rfc4514_string(subject), uris=uris)
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(trust),
            "ssl.key.pem": holder.key_pem,
            "ssl.certificate.pem": holder.chain_pem,
        }

    with KustosNode(tmp_path / "node", upstream.bootstrap, settings) as node:
        spiffe = "spiffe://example.org/ns/{}/sa/billing"
        assert produced(node, PII, by_certificate("CN=a,OU=team")) is None
        assert produced(node, PII, by_certificate("CN=b", spiffe.format("team"))) is None
        assert produced(node, PII, by_certificate("CN=c,OU=team", spiffe.format("guests"))) == DENIED
        assert produced(node, ORDERS, by_certificate("CN=d,O=team")) == DENIED
