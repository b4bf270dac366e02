"""Values of JSON as written, and checks of their types."""

import json
from collections.abc import Sequence
from typing import Any, Final, NoReturn

JsonObject = dict[str, Any]

INT_RANGE: Final = range(-(2**31), 2**31)
LONG_RANGE: Final = range(-(2**63), 2**63)
_DIGITS_MAX: Final = len(str(LONG_RANGE.start))
"""A longer number is out of every range, and slow to parse."""


class MalformedError(Exception):
    """The text is not JSON, or a value has a wrong type."""


class Number(str):
    """A number as the text that it was written with."""

    __slots__ = ()


class Integer(Number):
    """A number without a point and an exponent."""

    __slots__ = ()


def read_object(line: str) -> JsonObject:
    """Return the one object that fills the line; numbers are `Number`; raise `MalformedError`."""
    try:
        value = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise MalformedError from error
    if not isinstance(value, dict):
        raise MalformedError
    return value


def _without_repetition(pairs: Sequence[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MalformedError
    return found


def _no_number(_characters: str) -> NoReturn:
    raise MalformedError


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_without_repetition,
    parse_float=Number,
    parse_int=Integer,
    parse_constant=_no_number,
)


def text(value: Any) -> str | None:
    """Return a string; raise `MalformedError` for another type, or one that UTF-8 cannot encode."""
    if value is None:
        return None
    if not isinstance(value, str) or isinstance(value, Number):
        raise MalformedError
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:  # half of a pair of surrogates
            raise MalformedError from error
    return value


def boolean(value: Any) -> bool | None:
    """Return true or false; raise `MalformedError` for another type."""
    if value is None or isinstance(value, bool):
        return value
    raise MalformedError


def integer(value: Any, within: range) -> int | None:
    """Return a whole number of the range; raise `MalformedError` for any other value."""
    if value is None:
        return None
    if not isinstance(value, Integer) or len(value) > _DIGITS_MAX or (number := int(value)) not in within:
        raise MalformedError
    return number


def struct(value: Any) -> JsonObject | None:
    """Return an object; raise `MalformedError` for another type."""
    if value is None or isinstance(value, dict):
        return value
    raise MalformedError


def written(value: Any) -> str | None:
    """Return any value as text: a string itself, all else as compact JSON."""
    if value is None:
        return None
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return text(value)
    return text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
