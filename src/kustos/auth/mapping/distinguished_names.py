"""The name in a certificate as text, letter for letter as Java's `X500Principal.getName()` (RFC 2253).

The last part of the name comes first. The nine attribute types of RFC 2253 have a keyword; any other is a
number with the DER of its value as `#hex`, and so is a value that is not text.
"""

from typing import Final, Protocol

from kustos.auth.errors import NoMatchingRuleError


class DistinguishedName(Protocol):
    """What is needed of `cryptography.x509.Name`."""

    def public_bytes(self) -> bytes:
        """Return the DER of the name."""


_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OBJECT_IDENTIFIER: Final = 0x06
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""

_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANK: Final = " \r"
_MAX_LENGTH_BYTES: Final = 3
"""A name of 16 MB has a length of three bytes; what holds it was refused long before."""


def rfc2253(name: DistinguishedName) -> str:
    """Return the text of a name; raise `NoMatchingRuleError` if it has none.

    `name` is a `cryptography.x509.Name`; it keeps the kinds of its values, and sorts those of a multi-valued
    part as DER demands.
    """
    return rfc2253_of_der(name.public_bytes())


def rfc2253_of_der(data: bytes) -> str:
    """Return the text of a DER-encoded Name; raise `NoMatchingRuleError` for bytes that are not one.

    Java reads every text as UTF-8, and makes one replacement character of what is not. Here such a name is
    refused: different names must not become the same user.
    """
    try:
        (body,) = _all(data, _SEQUENCE)
        parts = [_relative(part) for part in _all(body, _SET)]
    except (ValueError, IndexError):
        # UnicodeDecodeError is a ValueError
        raise NoMatchingRuleError("the certificate's name is not valid DER, or not UTF-8") from None
    return ",".join(reversed(parts))


def _relative(body: bytes) -> str:
    """Return the text of one part, which has one attribute or more."""
    return "+".join(_attribute(each) for each in _all(body, _SEQUENCE))


def _attribute(body: bytes) -> str:
    tag, identifier, value = _read(body)
    value_tag, content, rest = _read(value)
    if tag != _OBJECT_IDENTIFIER or rest:
        raise ValueError
    dotted = _dotted(identifier)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or value_tag not in _TEXT_TAGS:
        return f"{keyword or dotted}=#{value.hex()}"
    return f"{keyword}={_escape(content.decode())}"


def _escape(text: str) -> str:
    """Return the text with a backslash before what RFC 2253 reserves, and before blanks at its ends."""
    escaped = "".join(
        f"\\{character}" if character in _ESCAPED else "\\00" if character == "\0" else character
        for character in text
    )
    without_lead = escaped.lstrip(_BLANK)
    inner = without_lead.rstrip(_BLANK)
    lead, trail = escaped[: len(escaped) - len(without_lead)], without_lead[len(inner) :]
    return "".join([*(f"\\{each}" for each in lead), inner, *(f"\\{each}" for each in trail)])


def _dotted(identifier: bytes) -> str:
    """Return an object identifier as numbers (X.690, 8.19)."""
    arcs, arc = list[int](), 0
    if not identifier or identifier[-1] & 0x80:
        raise ValueError
    for octet in identifier:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _all(data: bytes, wanted: int) -> list[bytes]:
    """Return the bodies of all elements, which must have this tag."""
    found: list[bytes] = []
    while data:
        tag, body, data = _read(data)
        if tag != wanted:
            raise ValueError
        found.append(body)
    return found


def _read(data: bytes) -> tuple[int, bytes, bytes]:
    """Return the tag and the body of the first element, and what follows it; raise ValueError, IndexError."""
    tag, length, start = data[0], data[1], 2
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= _MAX_LENGTH_BYTES:
            raise ValueError
        length, start = int.from_bytes(data[2 : 2 + count], "big"), 2 + count
    if len(data) < start + length:
        raise ValueError
    return tag, data[start : start + length], data[start + length :]
