"""The parts of certificates: as `cryptography` reads them, and one kind of error for any damage."""

import random
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kustos.tls import certificate_parts
from kustos.wire import DerError, der_elements
from testkit.certificates import Authority

AUTHORITY = Authority()


@pytest.mark.parametrize("year", [1950, 1968, 1969, 1999, 2000, 2049, 2050, 2068, 2069, 9999])
def test_the_parts_are_equal_to_those_of_cryptography(year: int) -> None:
    ends = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    certificate = AUTHORITY.issue("node", hosts=["one.example", "two.example"], ends=ends).certificate
    parts = certificate_parts(certificate.public_bytes(Encoding.DER))
    assert parts.subject == certificate.subject.public_bytes()
    assert parts.not_after == certificate.not_valid_after_utc == ends
    assert parts.has_expired == (ends < datetime.now(UTC))
    spki = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert parts.public_key == spki
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    whole = b"".join(each.encoded for each in der_elements(names.public_bytes()))
    assert all(name in whole for name in parts.alternative_names)
    assert len(parts.alternative_names) == 3


def test_a_certificate_without_extensions_has_no_alternative_names() -> None:
    certificate = AUTHORITY.issue("node", address=None).certificate
    assert certificate_parts(certificate.public_bytes(Encoding.DER)).alternative_names == frozenset()


def test_damage_raises_one_kind_of_error() -> None:
    der = AUTHORITY.issue("node").certificate.public_bytes(Encoding.DER)
    chance = random.Random(20261128)
    damaged = [der[:length] for length in range(len(der))]
    for _ in range(5000):
        changed = bytearray(der)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(len(der))] = chance.choice(
                (0, 2, 6, 0x30, 0x80, 0x84, 0xFF, chance.getrandbits(8))
            )
        damaged.append(bytes(changed))
    refused = 0
    for each in damaged:
        try:
            certificate_parts(each)
        except DerError:
            refused += 1
    assert refused > len(der)
