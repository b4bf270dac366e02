"""Delegation tokens of a real broker, read and logged in with by us; and ours, read by Kafka's tools."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from kustos.acl import KafkaPrincipal
from kustos.client import ClientSettings, connect
from kustos.client.errors import AuthenticationFailedError
from kustos.metadata.control import TokenCreation, TokenRenewal, TokenRules
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.directory.format import format_directory
from kustos.metadata.directory.loader import read_image
from kustos.metadata.features import METADATA_VERSION_FEATURE
from kustos.metadata.image import MetadataImage
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.store.store import MetadataStore
from kustos.wire.api_keys import ApiKey
from testkit.equality.requests import ask, create_token
from testkit.equality.sides import Side
from testkit.kafka import SASL_PLAINTEXT, STANDARD_AUTHORIZER, KafkaNode, KafkaTools, NodeSettings
from testkit.waiting import wait_until

USERS = {"admin": "admin-secret", "alice": "alice-secret"}
KEY = "a secret of some length"
SECRET = TokenSecret(KEY.encode())
ALICE, BOB = KafkaPrincipal("User", "alice"), KafkaPrincipal("User", "bob")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = NodeSettings(
        listeners=(SASL_PLAINTEXT,),
        users=USERS,
        authorizer=STANDARD_AUTHORIZER,
        super_users=("User:admin",),
        properties={"delegation.token.secret.key": KEY},
    )
    with KafkaNode(tmp_path_factory.mktemp("kafka"), settings) as node:
        yield node


@pytest.fixture(scope="module")
def side(broker: KafkaNode) -> Iterator[Side]:
    with Side("Kafka", broker.bootstrap, USERS) as made:
        yield made


@pytest.mark.behaviour("B069")
def test_a_token_of_kafka_is_read_from_its_log_with_its_hmac(broker: KafkaNode, side: Side) -> None:
    made = create_token(side, "admin", "alice")
    assert SECRET.hmac(made.token_id) == made.hmac

    def found() -> DelegationTokenRecord | None:
        return read_image(broker.log_dir).delegation_tokens.get(made.token_id)

    token = wait_until(found, what="the log holds the token")
    assert token == DelegationTokenRecord(
        "User:alice", "User:admin", ("User:bob",), made.issue_timestamp, made.max_timestamp,
        made.expiry_timestamp, made.token_id,
    )  # fmt: skip


@pytest.mark.behaviour("B222")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_we_log_in_at_kafka_with_its_token(broker: KafkaNode, side: Side, mechanism: str) -> None:
    made = create_token(side, "alice")
    owner = [{"principal_type": "User", "principal_name": "alice"}]

    def is_known() -> bool:
        answer = ask(side, "alice", ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=owner)
        return made.token_id in {token.token_id for token in answer.tokens}

    wait_until(is_known, what="the broker knows the token")

    def settings(password: str) -> ClientSettings:
        jaas = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required "
            f'username="{made.token_id}" password="{password}" tokenauth="true";'
        )
        properties = {
            "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas,
        }  # fmt: skip
        return ClientSettings.from_properties(broker.bootstrap, properties)

    right, wrong = settings(SECRET.password(made.token_id)), settings(base64.b64encode(bytes(64)).decode())
    connection = await connect(right.bootstrap_servers[0], right)
    try:
        answer = await connection.request(
            ApiKey.CREATE_DELEGATION_TOKEN, lambda codec: codec.new(renewers=[], max_lifetime=-1)
        )
        assert answer.error_code == 64, "Kafka knows it for a token"
        assert answer.principal_name == "alice"
    finally:
        connection.close()
    with pytest.raises(AuthenticationFailedError):
        await connect(wrong.bootstrap_servers[0], wrong)


def our_directory(directory: Path) -> MetadataImage:
    """A directory of ours with tokens: one made, one renewed, one swept away."""
    format_directory(directory)
    store = MetadataStore.open(directory, token_rules=TokenRules(SECRET))
    ((_,), (renewed,)) = store.append_many([TokenCreation(ALICE, ALICE), TokenCreation(ALICE, BOB, (ALICE,))])
    store.append_many([TokenRenewal(ALICE, renewed.hmac, 60_000)])
    image = store.image
    store.close()
    return image


def test_kafkas_dump_reads_our_tokens(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    image = our_directory(tmp_path / "ours")
    (log,) = (tmp_path / "ours" / "__cluster_metadata-0").glob("*.log")
    text = kafka_tools.run("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log)).require()
    for token_id, token in image.delegation_tokens.items():
        assert f'"tokenId":"{token_id}"' in text
        assert f'"expirationTimestamp":{token.expiration_timestamp_ms}' in text
    assert text.count('"type":"DELEGATION_TOKEN_RECORD"') == 3
    assert '"owner":"User:bob","requester":"User:alice","renewers":["User:alice"]' in text
    assert "isvalid: false" not in text
    assert image.features[METADATA_VERSION_FEATURE] >= 14
