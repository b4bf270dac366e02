"""UUIDs in Kafka's text form, and new ones that no tool takes for an option."""

import re
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.wire import new_uuid, uuid_of_text, uuid_text


@given(st.uuids())
def test_the_text_of_a_uuid_spells_it(value: UUID) -> None:
    text = uuid_text(value)
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", text)
    assert uuid_of_text(text) == value


def test_texts_are_those_of_kafka() -> None:
    # `Uuid.METADATA_TOPIC_ID`
    assert uuid_text(UUID(int=1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_text(UUID(bytes=b"\x5f" * 16)) == "X19fX19fX19fX19fX19fXw"


@pytest.mark.parametrize(
    "text", ["", "short", "A" * 21, "A" * 23, "A" * 21 + "=", "A" * 21 + "+", "A" * 22 + "\n"]
)
def test_other_texts_are_refused(text: str) -> None:
    words = f"`{text}` is not a UUID in 22 characters of URL-safe Base64"
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        uuid_of_text(text)


class Given:
    """Gives these ids, one after the other."""

    def __init__(self, *first_bytes: bytes) -> None:
        self._ids = iter([UUID(bytes=each + bytes(16 - len(each))) for each in first_bytes])

    def token_bytes(self, size: int) -> bytes:
        return bytes(size)

    def uuid(self) -> UUID:
        return next(self._ids)


def test_a_new_one_never_begins_with_a_dash() -> None:
    dashes = [bytes([first]) for first in range(0xF8, 0xFC)]
    for first in (b"\x00", b"\xf7", b"\xfc", b"\xff", b"\x00\xf8"):
        made = new_uuid(Given(*dashes, first))
        assert made.bytes.startswith(first)
        assert uuid_text(made)[0] != "-"
