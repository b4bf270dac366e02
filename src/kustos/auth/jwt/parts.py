"""The three parts of a compact JWT (RFC 7515, RFC 7519), read strictly.

Texts that two parsers could read differently are refused, such as an object with a duplicate name.
"""

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

TOKEN_MAX_CHARACTERS: Final = 65_536
"""The longest accepted token: tokens with hundreds of groups have about 20,000 characters."""

SECONDS_MAX: Final = (2**63 - 1) // 1000
"""The latest time that fits an int64 in milliseconds."""

_PART: Final = re.compile(r"[A-Za-z0-9_-]+")


class TokenError(ValueError):
    """The token is refused; the text is for the log and contains no part of the token."""


@dataclass(frozen=True, slots=True)
class TokenParts:
    """A parsed token that is not verified yet."""

    text: str = field(repr=False)
    header: Mapping[str, Any] = field(repr=False)
    claims: Mapping[str, Any] = field(repr=False)
    has_signature: bool

    @classmethod
    def parse(cls, text: str) -> "TokenParts":
        """Return the parts; raise `TokenError`."""
        if len(text) > TOKEN_MAX_CHARACTERS:
            raise TokenError(f"the token is longer than {TOKEN_MAX_CHARACTERS} characters")
        parts = text.split(".", 3)
        if len(parts) != 3:
            raise TokenError("the token has not three parts")
        header, payload, signature = parts
        if signature and _PART.fullmatch(signature) is None:
            raise TokenError("the signature is not in Base64 for URLs")
        return cls(text, _json_object(header, "header"), _json_object(payload, "payload"), bool(signature))

    def text_of(self, claim: str) -> str | None:
        """Return a claim's text, None if there is none; raise `TokenError` for another type."""
        value = self.claims.get(claim)
        if value is not None and not isinstance(value, str):
            raise TokenError(f"the claim `{claim}` is not text")
        return value

    def number_of(self, claim: str) -> int | float | None:
        """Return a time in seconds, None if there is none; raise `TokenError` if it is not a number."""
        value = self.claims.get(claim)
        if value is None:
            return None
        # a bool is an int in Python
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TokenError(f"the claim `{claim}` is not a number")
        if not math.isfinite(value) or abs(value) > SECONDS_MAX:
            raise TokenError(f"the claim `{claim}` is out of range")
        return value

    def claimed_name(self, claim: str) -> str | None:
        """Return the name in the token, proven or not, None if it has no readable name."""
        value = self.claims.get(claim)
        return value if isinstance(value, str) else None


def _json_object(part: str, what: str) -> Mapping[str, Any]:
    if _PART.fullmatch(part) is None:
        raise TokenError(f"the {what} is not in Base64 for URLs")
    try:
        data = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
        found = _STRICT.decode(data.decode())
        if b"\\u" in data:
            # a lone surrogate, which an escape can produce (RFC 7493, section 2.1), cannot be written to a
            # log
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        # Python's own errors contain the text
        raise TokenError(f"the {what} is not a JSON object with each name once") from None
    if not isinstance(found, dict):
        raise TokenError(f"the {what} is not a JSON object")
    return found


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _no_constant(_: str) -> NoReturn:
    # NaN and Infinity, which are not JSON
    raise ValueError


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_without_repetition, parse_constant=_no_constant)
