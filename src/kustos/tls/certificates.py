"""Certificates as bytes, and the few fields that kustos itself reads.

OpenSSL parses and verifies certificates. A second, strict parser would refuse certificates that OpenSSL and
Java accept, such as one with `O=AT&T` as PrintableString. So this module reads fields by their position only
(RFC 5280, section 4.1), and keeps names as bytes.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from kustos.auth import NoMatchingRuleError
from kustos.auth.mapping import rfc2253_of_der
from kustos.tls.values import TlsError
from kustos.wire import DerElement, DerError, DerTag, der_bodies, der_body, der_elements, der_fields

_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_ALTERNATIVE_NAMES: Final = bytes.fromhex("551d11")
"""The body of the object identifier 2.5.29.17."""

_TIMES: Final = {DerTag.UTC_TIME: "%y%m%d%H%M%SZ", DerTag.GENERALIZED_TIME: "%Y%m%d%H%M%SZ"}
"""RFC 5280 has no other forms, and OpenSSL refuses them."""

_UTC_TIME_BEGINS: Final = 1950


@dataclass(frozen=True, slots=True)
class CertificateParts:
    """Subject (a Name), public key and alternative names, each in DER, and the end of the validity."""

    subject: bytes
    public_key: bytes = field(repr=False)
    alternative_names: frozenset[bytes]
    not_after: datetime

    @property
    def has_expired(self) -> bool:
        """Whether its validity has ended."""
        return self.not_after < datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate (DER) and its place in the store, such as "certificate 2" or "the entry `node`"."""

    der: bytes = field(repr=False)
    place: str = field(compare=False)

    def __str__(self) -> str:
        """Return the place, and the subject if it can be read."""
        with suppress(TlsError, NoMatchingRuleError):
            return f"{self.place} (`{rfc2253_of_der(self.parts().subject)}`)"
        return self.place

    def parts(self) -> CertificateParts:
        """Return its parts; raise `TlsError` naming its place."""
        try:
            return certificate_parts(self.der)
        except DerError:
            raise TlsError(f"{self.place} is not a certificate") from None


def certificate_parts(der: bytes) -> CertificateParts:
    """Return the parts of a certificate; raise `DerError`."""
    signed, *_ = der_fields(der_body(der, DerTag.SEQUENCE), DerTag.SEQUENCE)
    versions = 1 if signed.body[:1] == bytes([_VERSION]) else 0
    # serial number, signature algorithm, issuer, validity, subject, public key
    tags = (*[_VERSION] * versions, DerTag.INTEGER, *[DerTag.SEQUENCE] * 5)
    fields = der_fields(signed.body, *tags)
    _, _, _, validity, subject, public_key = fields[versions : len(tags)]
    return CertificateParts(
        subject.encoded,
        public_key.encoded,
        frozenset(_alternative_names(fields[len(tags) :])),
        _end(validity.body),
    )


def _end(validity: bytes) -> datetime:
    times = list(der_elements(validity))
    if len(times) != 2 or times[1].tag not in _TIMES:
        raise DerError("the validity has no end")
    text = times[1].body.decode("ascii", "replace")
    try:
        end = datetime.strptime(text, _TIMES[DerTag(times[1].tag)]).replace(tzinfo=UTC)
    except ValueError:
        raise DerError("the end of the validity is not a time") from None
    is_short = times[1].tag == DerTag.UTC_TIME
    # Python maps two-digit years to 1969 and later
    return end.replace(year=end.year - 100) if is_short and end.year >= _UTC_TIME_BEGINS + 100 else end


def _alternative_names(fields: list[DerElement]) -> Iterator[bytes]:
    for each in fields:
        if each.tag != _EXTENSIONS:
            continue
        for extension in der_bodies(der_body(each.body, DerTag.SEQUENCE), DerTag.SEQUENCE):
            parts = der_fields(extension, DerTag.OBJECT_IDENTIFIER)
            if parts[0].body == _ALTERNATIVE_NAMES and parts[-1].tag == DerTag.OCTETS:
                names = der_body(parts[-1].body, DerTag.SEQUENCE)
                yield from (name.encoded for name in der_elements(names))
