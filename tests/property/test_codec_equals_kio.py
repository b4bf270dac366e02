"""Theorems: our readers and writers agree with kio's, over every API and version that both support."""

import io
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from random import Random
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from kustos.wire import (
    MalformedMessageError,
    MessageCodec,
    UnencodableMessageError,
    codec_versions,
    request_codec,
    response_codec,
)
from kustos.wire.message import Message
from kustos.wire.primitives import uvarint
from kustos.wire.schemas import APIS, Kind
from scripts.generate_schemas import FOLDER, modules, newest_clients
from testkit.tap.frames import entity as entity_of_kio


def every_codec() -> Iterator[tuple[int, int, Kind]]:
    for api_key in sorted(APIS):
        versions = codec_versions(api_key)
        assert versions is not None
        for version in range(versions[0], versions[1] + 1):
            yield api_key, version, "request"
            yield api_key, version, "response"


EVERY_CODEC = list(every_codec())


def entity_of(api_key: int, version: int, kind: Kind) -> Any:
    return entity_of_kio(api_key, version, KINDS[kind])


def codec_of(api_key: int, version: int, kind: Kind) -> MessageCodec:
    return (request_codec if kind == "request" else response_codec)(api_key, version)


KINDS = {"request": EntityType.request, "response": EntityType.response}
NUMBER_BITS = {
    "int8": 7, "int16": 15, "uint16": 16, "int32": 31, "int64": 63, "timedelta_i32": 31,
    "timedelta_i64": 40, "datetime_i64": 40,
}  # fmt: skip


RENAMED_FIELDS = {
    "generation_id": "generation_id_or_member_epoch",
    "acceptable_recovery_lag": "acceptable_recovery_lag_legacy",
}
"""kio's name of a field → its name in Kafka 4.4.0."""


def random_scalar(kind: str, random: Random) -> Any:
    if kind in NUMBER_BITS:
        return random.choice((0, 1, random.getrandbits(NUMBER_BITS[kind])))
    match kind:
        case "bool":
            return random.random() < 0.5
        case "string":
            return random.choice(("", "a", "näme", "x" * 200))
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 130)))
        case "uuid":
            return random.choice((bytes(16), random.randbytes(16)))
        case "error_code":
            return random.choice((-1, 0, 29, 58))
    return 1.5


def without_none(annotation: Any) -> Any:
    """Return the type of a field that may be null."""
    if isinstance(annotation, UnionType):
        return next(arm for arm in get_args(annotation) if arm is not NoneType)
    return annotation


def random_message(codec: MessageCodec, entity: Any, random: Random) -> Message:
    """Return a message of random values, with nulls where kio's schema allows them."""
    values: dict[str, Any] = {}
    for field in fields(entity):
        nullable = isinstance(field.type, UnionType) and NoneType in get_args(field.type)
        annotation = without_none(field.type)
        is_array = get_origin(annotation) is tuple
        inner = without_none(get_args(annotation)[0]) if is_array else annotation
        kind = field.metadata.get("kafka_type", "struct")
        keeps_null = kind not in {"uuid", "datetime_i64"} or is_array
        if nullable and keeps_null and random.random() < 0.2 and "tag" not in field.metadata:
            values[field.name] = None
        elif "tag" in field.metadata and random.random() < 0.5:
            continue
        else:

            def one(inner: Any = inner, kind: str = kind) -> Any:
                return (
                    random_message(codec, inner, random)
                    if is_dataclass(inner)
                    else random_scalar(kind, random)
                )

            values[field.name] = [one() for _ in range(random.randrange(3))] if is_array else one()
    return named_as_ours(codec.struct(entity.__name__), values)


def named_as_ours(message_type: type[Message], values: dict[str, Any]) -> Message:
    """Return the message; Kafka has renamed some fields since kio was made."""
    return message_type(
        **{
            name if name in message_type.FIELDS else RENAMED_FIELDS[name]: value
            for name, value in values.items()
        }
    )


def test_the_generated_schemas_are_up_to_date() -> None:
    assert {path.name: path.read_text() for path in FOLDER.glob("apis_*.py")} == modules(newest_clients())


@pytest.mark.parametrize(("api_key", "version", "kind"), EVERY_CODEC)
def test_kio_reads_our_bytes_and_writes_the_same(api_key: int, version: int, kind: Kind) -> None:
    codec, entity = codec_of(api_key, version, kind), entity_of(api_key, version, kind)
    for seed in range(12):
        message = random_message(codec, entity, Random(seed))
        ours = codec.encode(message)
        theirs, size = entity_reader(entity)(ours, 0)
        assert size == len(ours), f"kio reads {size} of {len(ours)} bytes with seed {seed}"
        buffer = io.BytesIO()
        entity_writer(entity)(buffer, theirs)
        assert buffer.getvalue() == ours, f"kio writes it differently with seed {seed}"


@pytest.mark.parametrize(("api_key", "version", "kind"), EVERY_CODEC)
def test_reading_written_bytes_returns_the_message(api_key: int, version: int, kind: Kind) -> None:
    codec, entity = codec_of(api_key, version, kind), entity_of(api_key, version, kind)
    for seed in range(8):
        message = random_message(codec, entity, Random(seed))
        decoded = codec.decode(codec.encode(message))
        assert decoded.message == message
        assert not decoded.had_unknown_tags


@pytest.mark.parametrize(("api_key", "version", "kind"), EVERY_CODEC)
def test_a_missing_field_has_the_default_of_the_schema(api_key: int, version: int, kind: Kind) -> None:
    codec, entity = codec_of(api_key, version, kind), entity_of(api_key, version, kind)
    for field in fields(entity):
        if field.default is not MISSING and isinstance(field.default, str | int):
            ours = codec.new()
            name = field.name if field.name in ours.FIELDS else RENAMED_FIELDS[field.name]
            assert getattr(ours, name) == field.default


@given(index=st.integers(0, len(EVERY_CODEC) - 1), seed=st.integers(0, 2**32), cut=st.integers(1, 50))
@settings(max_examples=300, deadline=None)
def test_every_truncation_is_refused(index: int, seed: int, cut: int) -> None:
    api_key, version, kind = EVERY_CODEC[index]
    codec = codec_of(api_key, version, kind)
    data = codec.encode(random_message(codec, entity_of(api_key, version, kind), Random(seed)))
    if len(data) >= cut:
        with pytest.raises(MalformedMessageError):
            codec.decode(data[:-cut])


@given(index=st.integers(0, len(EVERY_CODEC) - 1), seed=st.integers(0, 2**32), tail=st.binary(min_size=1))
@settings(max_examples=300, deadline=None)
def test_trailing_bytes_are_refused(index: int, seed: int, tail: bytes) -> None:
    api_key, version, kind = EVERY_CODEC[index]
    codec = codec_of(api_key, version, kind)
    data = codec.encode(random_message(codec, entity_of(api_key, version, kind), Random(seed)))
    with pytest.raises(MalformedMessageError):
        codec.decode(data + tail)


@given(index=st.integers(0, len(EVERY_CODEC) - 1), seed=st.integers(0, 2**32), noise=st.binary(max_size=200))
@settings(max_examples=500, deadline=None)
def test_noise_is_parsed_exactly_or_rejected(index: int, seed: int, noise: bytes) -> None:
    api_key, version, kind = EVERY_CODEC[index]
    codec = codec_of(api_key, version, kind)
    data = bytearray(codec.encode(random_message(codec, entity_of(api_key, version, kind), Random(seed))))
    random = Random(seed)
    for byte in noise[:3]:
        if data:
            data[random.randrange(len(data))] = byte
    try:
        decoded = codec.decode(bytes(data))
    except MalformedMessageError:
        return
    again = codec.decode(codec.encode(decoded.message))
    assert again.message == decoded.message or decoded.message != decoded.message


@given(seed=st.integers(0, 2**32), tag=st.integers(1000, 2000), payload=st.binary(max_size=40))
def test_unknown_tags_are_skipped_reported_and_not_written(seed: int, tag: int, payload: bytes) -> None:
    codec = request_codec(3, 12)
    message = random_message(codec, entity_of(3, 12, "request"), Random(seed))
    plain = codec.encode(message)
    assert plain[-1] == 0, "MetadataRequest v12 has no tagged fields of its own"
    tagged = plain[:-1] + uvarint(1) + uvarint(tag) + uvarint(len(payload)) + payload
    decoded = codec.decode(tagged)
    assert decoded.had_unknown_tags
    assert codec.encode(decoded.message) == plain


@pytest.mark.parametrize("long", [b"\x80\x00", b"\x81\x00", b"\x81\x80\x00", b"\xff\xff\xff\xff\xff\x00"])
def test_over_long_varints_are_refused(long: bytes) -> None:
    with pytest.raises(MalformedMessageError):
        request_codec(3, 12).decode(long + b"\0" * 8)


@pytest.mark.parametrize("version", [1, 3], ids=["plain", "compact"])
def test_strings_have_kafkas_length_limit(version: int) -> None:
    # the compact encoding could hold more; Kafka's generated readers and writers refuse it
    codec = request_codec(30, version)
    assert codec.flexible is (version == 3)

    def request(name: str) -> Message:
        creation = codec.struct("AclCreation")(
            resource_type=2, resource_name=name, principal="User:a", host="*", operation=3, permission_type=3
        )
        return codec.new(creations=[creation])

    longest = codec.encode(request("n" * 32_767))
    assert codec.decode(longest).message == request("n" * 32_767)
    with pytest.raises(UnencodableMessageError):
        codec.encode(request("n" * 32_768))
    if codec.flexible:
        longer = longest.replace(uvarint(32_768) + b"n", uvarint(32_769) + b"nn")
        with pytest.raises(MalformedMessageError, match="`resource_name` is longer than Kafka reads"):
            codec.decode(longer)


def full_of(codec: MessageCodec, entity: Any, secret: str) -> Message:
    """Return a message with one element in every array, and the secret wherever a secret may stand."""
    values: dict[str, Any] = {}
    for field in fields(entity):
        annotation = without_none(field.type)
        is_array = get_origin(annotation) is tuple
        inner = without_none(get_args(annotation)[0]) if is_array else annotation
        if is_dataclass(inner):
            value: Any = full_of(codec, inner, secret)
        elif field.metadata["kafka_type"] in {"bytes", "records"}:
            value = secret.encode()
        elif field.metadata["kafka_type"] == "string" and field.name == "value":
            value = secret
        else:
            continue
        values[field.name] = [value] if is_array else value
    return named_as_ours(codec.struct(entity.__name__), values)


@given(
    st.sampled_from(EVERY_CODEC),
    st.sampled_from([10, 16, 40]).flatmap(
        lambda size: st.text("KLMNOPQRSTUVWXYZ", min_size=size, max_size=size)
    ),
)
def test_no_bytes_and_no_configuration_value_are_printed(which: tuple[int, int, Kind], secret: str) -> None:
    shown = repr(full_of(codec_of(*which), entity_of(*which), secret))
    assert secret not in shown
    assert secret.encode().hex() not in shown
