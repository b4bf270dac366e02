"""A list that is read in parts is read as strictly as a whole, and no part takes more than it is given."""

import pytest

from kustos.wire import ApiKey, ItemReader, MalformedMessageError, Message, MessageCodec, response_codec

VERSIONS = (0, 7, 8, 12, 13)
TOPICS = 6


def listing(version: int, topics: int = TOPICS) -> tuple[MessageCodec, Message]:
    codec = response_codec(ApiKey.METADATA, version)
    topic = codec.root.ELEMENTS["topics"]
    partition = topic.ELEMENTS["partitions"]
    found = [
        topic.fit(
            name=f"topic-{number}", partitions=[partition.fit(partition_index=n) for n in range(number)]
        )
        for number in range(topics)
    ]
    return codec, codec.root.fit(topics=found, controller_id=7, cluster_id="c")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("bytes_max", [0, 1, 500, 10**6])
def test_a_message_read_in_parts_is_the_message(version: int, bytes_max: int) -> None:
    codec, message = listing(version)
    reader = ItemReader(codec, b"head" + codec.encode(message), 4, "topics")
    found: list[Message] = []
    while True:
        part, size_bytes = reader.read(bytes_max)
        if not part:
            break
        # only the last of a part may lie beyond the limit
        assert len(part) == 1 or size_bytes - len(codec.encode(codec.root.fit(topics=part[-1:]))) < bytes_max
        found += part
    assert reader.is_done
    assert size_bytes == 0
    reader.message.topics = found
    assert reader.message == message


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_without_items_has_one_empty_part(version: int) -> None:
    codec, message = listing(version, topics=0)
    reader = ItemReader(codec, codec.encode(message), 0, "topics")
    assert reader.read(1) == ([], 0)
    assert reader.is_done


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_no_message_as_a_whole_is_none_in_parts(version: int) -> None:
    codec, message = listing(version)
    whole = codec.encode(message)
    for damaged in [*(whole[:size] for size in range(len(whole))), whole + b"\0"]:
        with pytest.raises(MalformedMessageError):
            codec.decode(damaged)
        with pytest.raises(MalformedMessageError, match=codec.name):
            read_all(codec, damaged)


def test_a_list_longer_than_the_message_is_refused_before_it_is_read() -> None:
    codec, message = listing(7, topics=0)
    whole = bytearray(codec.encode(message))
    whole[-4:] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(MalformedMessageError):
        read_all(codec, bytes(whole))


def read_all(codec: MessageCodec, data: bytes) -> None:
    reader = ItemReader(codec, data, 0, "topics")
    while reader.read(1)[0]:
        continue
