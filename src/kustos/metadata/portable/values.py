"""The forms of single values in an export: convert JSON to record values; errors omit the value."""

import base64
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from kustos.metadata.records.fields import MAX_STRING_SIZE_BYTES
from kustos.metadata.scram import ScramMechanism
from kustos.wire import uuid_of_text

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

RENEWERS_MAX: Final = 10_000
"""The maximum number of principals in one list: equal to the operations of one user that Kafka accepts in a
request."""

Form = Callable[[Any], Any]
"""Returns the record value, or raises `UnfitValueError`."""


class UnfitValueError(Exception):
    """A value that its field cannot have; the text has only the rule, since the value may be secret."""


def whole_number(low: int, high: int) -> Form:
    """Return the form of a whole number within bounds."""

    def checked(value: Any) -> int:
        if type(value) is not int or not low <= value <= high:
            raise UnfitValueError(f"must be a whole number from {low} to {high}")
        return value

    return checked


def truth(value: Any) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise UnfitValueError("must be true or false")
    return value


def text(value: Any) -> str:
    """Return a text that a record can hold."""
    if not isinstance(value, str):
        raise UnfitValueError("must be a text")
    try:
        size_bytes = len(value.encode())
    except UnicodeEncodeError:
        raise UnfitValueError("holds half of a surrogate pair, which UTF-8 cannot express") from None
    if size_bytes > MAX_STRING_SIZE_BYTES:
        raise UnfitValueError(f"has more than {MAX_STRING_SIZE_BYTES} bytes of UTF-8, which no record holds")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, list) or len(value) > RENEWERS_MAX:
        raise UnfitValueError(f"must be a list of at most {RENEWERS_MAX} texts")
    return tuple(map(text, value))


def uuid(value: Any) -> UUID:
    """Return a UUID, given in Kafka's form."""
    try:
        return uuid_of_text(text(value))
    except ValueError:
        raise UnfitValueError("must be a UUID in 22 characters of URL-safe Base64") from None


def octets(value: Any) -> bytes:
    """Return bytes, given in Base64."""
    try:
        return base64.b64decode(text(value), validate=True)
    except ValueError:
        raise UnfitValueError("must be Base64") from None


def octets_text(value: bytes) -> str:
    """Return bytes in Base64."""
    return base64.b64encode(value).decode()


def mechanism(value: Any) -> int:
    """Return the code of a SCRAM mechanism, given by its name, or by its number if it has no name."""
    if type(value) is int and 0 <= value <= 127 and ScramMechanism.from_code(value) is None:
        return value
    known = ScramMechanism.from_name(value) if isinstance(value, str) else None
    if known is None:
        raise UnfitValueError("must be SCRAM-SHA-256 or SCRAM-SHA-512")
    return known.value


def mechanism_name(code: int) -> str | int:
    """Return the name of a SCRAM mechanism, or its number if it has no name."""
    known = ScramMechanism.from_code(code)
    return code if known is None else known.mechanism_name
