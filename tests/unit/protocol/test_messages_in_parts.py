"""A message in parts equals the whole message, and no part exceeds its limit of elements."""

from random import Random

import pytest

from kustos.protocol import Reply, UpstreamAnswer
from kustos.wire import (
    ApiKey,
    MalformedMessageError,
    Message,
    MessageCodec,
    PartReader,
    PartWriter,
    UnencodableMessageError,
    request_codec,
    response_codec,
)
from testkit.protocol.driver import EVERY_VERSION
from testkit.protocol.random_requests import model, random_request, random_struct, schema

APIS = sorted({api_key for api_key, _ in EVERY_VERSION})


@pytest.mark.parametrize("api_key", APIS)
def test_every_message_in_parts_equals_the_whole_message(api_key: int) -> None:
    random, world = Random(api_key), model()
    for version in (version for key, version in EVERY_VERSION if key == api_key):
        for _ in range(3):
            check_in_parts(request_codec(api_key, version), random_request(api_key, version, random, world))
            codec = response_codec(api_key, version)
            made = schema(api_key, version, "response")
            check_in_parts(codec, random_struct(codec, made, api_key, random, world))


def check_in_parts(codec: MessageCodec, message: Message) -> None:
    whole = codec.encode(message)
    for elements_max in (1, 3):
        writer = PartWriter(codec, message)
        while not writer.is_done:
            writer.write(elements_max)
        assert writer.body == whole
        assert read_through(codec, b"head" + whole, 4, elements_max) == message
    for damaged in [*(whole[:size] for size in range(0, len(whole), 7)), whole + b"\0"]:
        with pytest.raises(MalformedMessageError) as refused_whole:
            codec.decode(damaged)
        with pytest.raises(MalformedMessageError) as refused:
            read_through(codec, damaged, 0, 1)
        assert str(refused.value) == str(refused_whole.value)


def read_through(codec: MessageCodec, data: bytes, offset: int, elements_max: int) -> Message:
    reader = PartReader(codec, data, offset)
    while reader.message is None:
        reader.read(elements_max)
    assert not reader.had_unknown_tags
    return reader.message


def group_of(members: int, topics: int) -> tuple[MessageCodec, Message]:
    """A DescribeGroups of one group, whose answer grows with the group."""
    codec = response_codec(ApiKey.CONSUMER_GROUP_DESCRIBE, 1)
    group = codec.root.ELEMENTS["groups"]
    member = group.ELEMENTS["members"]
    assignment = member.ELEMENTS["assignment"]
    assigned = [assignment.ELEMENTS["topic_partitions"](partitions=[0]) for _ in range(topics)]
    having = [member(assignment=assignment(topic_partitions=assigned)) for _ in range(members)]
    return codec, codec.root(groups=[group(members=having)])


@pytest.mark.parametrize(("members", "topics"), [(200, 1), (1, 200), (20, 20)])
def test_a_part_has_no_more_elements_than_asked_for_however_deep_they_are(members: int, topics: int) -> None:
    codec, message = group_of(members, topics)
    writer, reader = PartWriter(codec, message), PartReader(codec, codec.encode(message), 0)
    written = []
    while not writer.is_done:
        written.append(writer.write(50))
    read = []
    while reader.message is None:
        read.append(reader.read(50))
    elements = 1 + members + members * topics
    for counts in (written, read):
        assert set(counts[:-1]) == {50}
        assert sum(counts) == elements


def test_large_lists_of_numbers_count() -> None:
    codec = response_codec(ApiKey.DESCRIBE_TRANSACTIONS, 0)
    state = codec.root.ELEMENTS["transaction_states"]
    topics = [state.ELEMENTS["topics"](topic="t", partitions=list(range(640))) for _ in range(10)]
    message = codec.root(transaction_states=[state(topics=topics)])
    reader = PartReader(codec, codec.encode(message), 0)
    parts = 0
    while reader.message is None:
        reader.read(40)
        parts += 1
    assert parts > 10


def test_tags_that_no_schema_has_are_reported() -> None:
    codec = response_codec(ApiKey.CONSUMER_GROUP_DESCRIBE, 1)
    whole = codec.encode(codec.root())
    reader = PartReader(codec, whole[:-1] + b"\1\x63\1x", 0)
    reader.read(1)
    assert reader.had_unknown_tags


def test_an_invalid_value_is_rejected_with_the_message_name() -> None:
    codec, message = group_of(1, 1)
    message.groups[0].members[0].member_id = None
    with pytest.raises(UnencodableMessageError, match="ConsumerGroupDescribeResponse"):
        PartWriter(codec, message).write(10)


def test_messages_of_a_handler_print_no_bytes() -> None:
    """The answer to CreateDelegationToken has the token's secret, decoded or not."""
    codec = response_codec(ApiKey.CREATE_DELEGATION_TOKEN, 3)
    message = codec.root(hmac=b"the secret")
    body = codec.encode(message)
    for value in (Reply(message), Reply(body), UpstreamAnswer(message, body, b"head" + body)):
        assert "secret" not in repr(value)


def test_the_text_form_of_a_message_shows_only_the_length_of_possible_secrets() -> None:
    codec = request_codec(ApiKey.SASL_AUTHENTICATE, 2)
    assert (
        repr(codec.new(auth_bytes=b"\0alice\0secret12")) == "SaslAuthenticateRequest(auth_bytes=<15 bytes>)"
    )
    assert (
        repr(codec.new(auth_bytes=b"\0alice\0secret123")) == "SaslAuthenticateRequest(auth_bytes=<16 bytes>)"
    )
    codec = request_codec(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    config = codec.struct("AlterableConfig")
    assert repr(config(name="ssl.keystore.password", config_operation=0, value="secret")) == (
        "AlterableConfig(name='ssl.keystore.password', config_operation=0, value=<6 characters>)"
    )
    assert "value=None" in repr(config(name="ssl.keystore.password", config_operation=1, value=None))


def test_the_text_form_of_a_message_shows_ids_and_items() -> None:
    codec = request_codec(ApiKey.DELETE_TOPICS, 6)
    state = codec.struct("DeleteTopicState")
    assert repr(state(name="a", topic_id=bytes(range(16)))) == (
        "DeleteTopicState(name='a', topic_id=000102030405060708090a0b0c0d0e0f)"
    )
    by_list = request_codec(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
    assert "subscribed_topic_names=['a', 'b']" in repr(by_list.new(subscribed_topic_names=["a", "b"]))
