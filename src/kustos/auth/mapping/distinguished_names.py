"""The names in a certificate as text.

A subject is written exactly as Java's `X500Principal.getName()` writes it (RFC 2253). The last part of the
name comes first. The nine attribute types of RFC 2253 have a keyword; any other type is
written as a number, with the DER of its value as `#hex`. A value that is not text is also written as `#hex`.
"""

from collections.abc import Iterable
from typing import Final

from kustos.auth.errors import NoMatchingRuleError
from kustos.wire import DerElement, DerError, DerTag, der_bodies, der_body, der_elements, der_fields

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
_TEXT_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""

_ALTERNATIVES: Final = {0x81: "EMAIL", 0x82: "DNS", 0x86: "URI"}
"""The tags of rfc822Name, dNSName and uniformResourceIdentifier (RFC 5280, section 4.2.1.6)."""

_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANK: Final = " \r"


def rfc2253_of_der(data: bytes) -> str:
    """Return the text of a DER-encoded Name; raise `NoMatchingRuleError` for bytes that are not one.

    The attributes of a multi-valued part keep their order. Java decodes every text as UTF-8 and replaces
    invalid bytes with U+FFFD. kustos refuses such a name, because different names must not become the same
    user.
    """
    try:
        parts = [_relative(part) for part in der_bodies(der_body(data, DerTag.SEQUENCE), DerTag.SET)]
    except ValueError:
        # DerError and UnicodeDecodeError are ValueErrors
        raise NoMatchingRuleError("the certificate's name is not valid DER, or not UTF-8") from None
    return ",".join(reversed(parts))


def fields_of_der(subject: bytes, alternative_names: Iterable[bytes]) -> list[str]:
    """Return the texts in a DER-encoded subject and alternative names, such as `OU=payments` and
    `URI=spiffe://example.org/ns/prod`; raise `NoMatchingRuleError` for bytes that are not names.

    Values are not escaped. Attributes and names of other types are left out.
    """
    found: list[str] = []
    try:
        for part in der_bodies(der_body(subject, DerTag.SEQUENCE), DerTag.SET):
            for attribute in der_bodies(part, DerTag.SEQUENCE):
                dotted, value = _type_and_value(attribute)
                keyword = _KEYWORDS.get(dotted)
                if keyword is not None and value.tag in _TEXT_TAGS:
                    found.append(f"{keyword}={value.body.decode()}")
        for name in alternative_names:
            [element] = der_elements(name)
            if element.tag in _ALTERNATIVES:
                found.append(f"{_ALTERNATIVES[element.tag]}={element.body.decode('ascii')}")
    except ValueError:
        raise NoMatchingRuleError("a name in the certificate is not valid DER, or not text") from None
    return found


def _relative(body: bytes) -> str:
    """Return the text of one part, which has one attribute or more."""
    return "+".join(_attribute(each) for each in der_bodies(body, DerTag.SEQUENCE))


def _type_and_value(body: bytes) -> tuple[str, DerElement]:
    identifier, value, *rest = der_fields(body, DerTag.OBJECT_IDENTIFIER)
    if rest:
        raise DerError("an attribute has more than a type and a value")
    return _dotted(identifier.body), value


def _attribute(body: bytes) -> str:
    dotted, value = _type_and_value(body)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or value.tag not in _TEXT_TAGS:
        return f"{keyword or dotted}=#{value.encoded.hex()}"
    return f"{keyword}={_escape(value.body.decode())}"


def _escape(text: str) -> str:
    """Return the text with a backslash before the reserved characters of RFC 2253, and before blanks at its
    ends."""
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
