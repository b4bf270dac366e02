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


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("bytes_max", [1, 300, 10**6])
def test_an_outline_has_the_names_and_finds_the_items(version: int, bytes_max: int) -> None:
    codec, message = listing(version)
    reader = ItemReader(codec, b"head" + codec.encode(message), 4, "topics")
    found: list[Message] = []
    while True:
        part, _ = reader.outline(bytes_max)
        if not part:
            break
        items = [reader.item_at(offset) for _, offset in part]
        assert [item.name for item in items] == [name for name, _ in part]
        found += items
    assert reader.is_done
    assert found == message.topics


@pytest.mark.parametrize("version", VERSIONS)
def test_an_outline_ends_where_the_message_ends(version: int) -> None:
    codec, message = listing(version)
    whole = codec.encode(message)
    for damaged in [*(whole[:size] for size in range(len(whole))), whole + b"\0"]:
        with pytest.raises(MalformedMessageError, match=codec.name):
            read_outline(codec, damaged)


def test_an_outline_passes_over_tags_that_no_schema_has() -> None:
    codec, message = listing(12, topics=1)
    whole = codec.encode(message)
    # the tags of the topic are the last byte but those of the message
    at = len(whole) - 2
    assert whole[at:] == b"\0\0"
    many = b"".join(bytes([tag & 0x7F | 0x80, tag >> 7, 1, 7]) for tag in range(200, 400))
    for tags in (b"\1\x05\2ab", b"\xc8\1" + many):
        assert read_outline(codec, whole[:at] + tags + b"\0") == ["topic-0"]


def read_outline(codec: MessageCodec, data: bytes) -> list[str]:
    reader = ItemReader(codec, data, 0, "topics")
    names: list[str] = []
    while part := reader.outline(1)[0]:
        names += [name for name, _ in part]
    return names


def read_all(codec: MessageCodec, data: bytes) -> None:
    reader = ItemReader(codec, data, 0, "topics")
    while reader.read(1)[0]:
        continue
