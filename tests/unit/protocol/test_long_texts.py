"""Error messages quote client input, as in Kafka, and always fit into a protocol string."""

from typing import Any

import pytest

from kustos.authorizer import KafkaApiError
from kustos.metadata.control import ApiError
from kustos.protocol import node_messages
from kustos.protocol.admin import error_fields, error_fields_with_text
from kustos.protocol.shapes import TEXT_CHARACTERS_MAX, shortened
from kustos.wire import ApiKey, ErrorCode, request_codec, response_codec
from testkit.protocol.random_requests import ALL_ALLOWED
from tests.unit.protocol.protocol_requests import ALPHA, GROUP_NAME, ask, connection, may

STRING_BYTES_MAX = 32_767
LONG = "x" * 32_760
TOPIC_DENIED, INVALID_REQUEST, INVALID_EXPRESSION = 29, 42, 128


@pytest.mark.parametrize("letter", ["x", "é", "\u20ac", "\U0001f600"])
def test_a_text_of_any_characters_fits(letter: str) -> None:
    text = f"begin{letter * 40_000}end"
    short = shortened(text)
    assert len(short.encode()) < STRING_BYTES_MAX / 2
    assert (short[:6], short[-4:]) == (f"begin{letter}", f"{letter}end")


@pytest.mark.parametrize("length", [0, 1, TEXT_CHARACTERS_MAX])
def test_a_text_that_fits_stays_as_it_is(length: int) -> None:
    assert shortened("x" * length) == "x" * length


def test_an_invalid_expression_of_any_length_is_rejected_with_a_reason() -> None:
    member = {"group_id": GROUP_NAME, "member_id": "m", "member_epoch": 0, "topic_partitions": []}
    fields = {"subscribed_topic_names": None, "subscribed_topic_regex": LONG}
    outcome, answer = ask(connection(may("READ", "GROUP")), 68, 1, **member, **fields)
    assert (answer["error_code"], outcome.forwarded) == (INVALID_EXPRESSION, [])
    assert answer["error_message"].startswith("SubscribedTopicRegex `xx")
    assert answer["error_message"].endswith("regular expression: it is longer than 1024 characters.")


@pytest.mark.parametrize("api_key", [33, 44])
@pytest.mark.parametrize(
    ("name", "settings", "begins"),
    [
        (LONG, [("a", "1")], "Node id must be an integer, but it is: xx"),
        (
            "1",
            [(f"{number}{'x' * 3_000}", None) for number in range(20)],
            "Null value not supported for : 0xx",
        ),
    ],
)
def test_settings_with_any_name_are_rejected_with_a_reason(
    api_key: int, name: str, settings: list[tuple[str, str | None]], begins: str
) -> None:
    operation = {"config_operation": 0} if api_key == 44 else {}
    configs = [{"name": each, "value": value} | operation for each, value in settings]
    resource = {"resource_type": 4, "resource_name": name, "configs": configs}
    _, answer = ask(connection(*ALL_ALLOWED), api_key, 1, resources=[resource])
    [result] = answer["responses"]
    assert (result["error_code"], result["error_message"][: len(begins)]) == (INVALID_REQUEST, begins)


def test_the_error_names_uncreatable_topics_up_to_its_length_limit() -> None:
    names = [f"{number}{'c' * 240}" for number in range(200)]
    topics = [{"name": name, "partitions": 0, "replication_factor": 0, "topic_configs": []} for name in names]
    part = {"subtopology_id": "0", "source_topics": [ALPHA], "state_changelog_topics": topics}
    driver = connection(may("READ", "GROUP"), may("DESCRIBE", name="*"))
    fields: dict[str, Any] = {"group_id": GROUP_NAME, "member_id": "m", "member_epoch": 0}
    _, answer = ask(driver, 88, 0, **fields, topology={"epoch": 0, "subtopologies": [part]})
    assert answer["error_code"] == TOPIC_DENIED
    assert answer["error_message"].startswith(f"Unauthorized to CREATE on topics {min(names)}, ")


def test_errors_about_the_node_fit() -> None:
    errors = [kind(ErrorCode.invalid_request, f"`{LONG}` is wrong") for kind in (ApiError, KafkaApiError)]
    for error in errors:
        for fields in (error_fields(error), error_fields_with_text(error)):
            assert str(fields["error_message"]).endswith("x` is wrong")
            assert len(str(fields["error_message"])) < TEXT_CHARACTERS_MAX + 10
    features = response_codec(ApiKey.UPDATE_FEATURES, 1)
    update = request_codec(ApiKey.UPDATE_FEATURES, 1).new(feature_updates=[])
    features.encode(
        node_messages.updated_features(features.root, update, ApiError(ErrorCode.invalid_request, LONG))
    )
    configs = response_codec(ApiKey.DESCRIBE_CONFIGS, 4)
    asked = request_codec(ApiKey.DESCRIBE_CONFIGS, 4)
    resource = asked.root.ELEMENTS["resources"](resource_type=4, resource_name="1", configuration_keys=None)
    error = ApiError(ErrorCode.invalid_request, f"{LONG}{LONG}")
    configs.encode(node_messages.described_configs(configs.root, asked.new(resources=[resource]), [error]))
