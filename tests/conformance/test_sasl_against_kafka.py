"""Our client's logins to a real broker by PLAIN and SCRAM."""

from collections.abc import Iterator

import pytest

from kustos.auth import SaslClientError, SaslClientMachine, client_mechanism
from kustos.runtime import SystemEntropy
from kustos.wire import read_response_header, request_codec, request_frame, response_codec
from testkit.conversations.play import Line
from testkit.guarded.raw_client import framed
from testkit.kafka import SASL_PLAINTEXT, KafkaNode, NodeSettings
from testkit.sasl import NAMES, PASSWORD, request


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    settings = NodeSettings(
        listeners=(SASL_PLAINTEXT,),
        users={"alice": PASSWORD},
        properties={"connections.max.reauth.ms": "3600000"},
    )
    with KafkaNode(tmp_path_factory.mktemp("kafka"), settings) as node:
        yield node


def log_in_to(link: Line, mechanism: str, user: str, password: str, version: int) -> SaslClientMachine:
    client = SaslClientMachine(client_mechanism(mechanism, user, password, SystemEntropy()), version)
    asked = client.start()
    while True:
        codec = request_codec(asked.api_key, asked.api_version)
        link.send(request_frame(codec, asked.api_key, 1, "kustos", asked.body))
        answer = link.receive()
        assert answer is not None
        offset = read_response_header(answer, response_codec(asked.api_key, asked.api_version).flexible)[1]
        following = client.receive(answer[offset:])
        if following is None:
            return client
        asked = following


@pytest.mark.behaviour("B216", "B219", "B224", "B234")
@pytest.mark.parametrize("mechanism", NAMES)
@pytest.mark.parametrize("version", [0, 1, 2])
def test_our_client_logs_in_to_kafka(kafka: KafkaNode, mechanism: str, version: int) -> None:
    with Line(kafka.address("SASL_PLAINTEXT"), None) as link:
        client = log_in_to(link, mechanism, "alice", PASSWORD, version)
        assert client.session_lifetime_ms == (3_600_000 if version else 0)
        link.send(framed(request(3, 9)))
        answer = link.receive()
        assert answer is not None
        offset = read_response_header(answer, True)[1]
        assert response_codec(3, 9).decode(answer, offset).message.brokers


@pytest.mark.behaviour("B235", "B256")
@pytest.mark.parametrize("mechanism", NAMES)
def test_our_client_says_why_kafka_refused(kafka: KafkaNode, mechanism: str) -> None:
    with (
        Line(kafka.address("SASL_PLAINTEXT"), None) as link,
        pytest.raises(SaslClientError, match=r"(?i)invalid") as raised,
    ):
        log_in_to(link, mechanism, "alice", "wrong-s3cret", 2)
    assert raised.value.error_code == 58
    assert "s3cret" not in str(raised.value)
