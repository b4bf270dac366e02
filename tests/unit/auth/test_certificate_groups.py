"""The groups of clients from the fields of their certificates."""

from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kustos.auth import ListenerPrincipals, MappingRuleError, NoMatchingRuleError
from kustos.auth.groups import GROUPS_MAX, GroupError
from kustos.auth.mapping import fields_of_der, ssl_group_mapper
from kustos.auth.mapping.certificate_rules import MAX_FIELDS
from kustos.auth.mapping.replacements import MAX_NAME_CHARACTERS
from kustos.server.tls import certificate_principals
from kustos.tls import TlsError, certificate_parts
from testkit.certificates import Authority

SPIFFE = "spiffe://example.org/ns/prod/sa/billing"
RULES = r"RULE:OU=(.*)/$1/, RULE:URI=spiffe:\/\/example.org\/ns\/([^\/]+)\/.*/ns-$1/L,RULE:DNS=.*\.(.*)/$1/U"
PRINCIPALS = ListenerPrincipals(listener_name="CLIENTS", security_protocol="SSL")


def certificate(subject: str = "CN=alice,OU=payments,OU=ops,O=kustos", **more: Any) -> bytes:
    holder = Authority().issue(x509.Name.from_rfc4514_string(subject), **more)
    return holder.certificate.public_bytes(Encoding.DER)


def fields(der: bytes) -> set[str]:
    parts = certificate_parts(der)
    return set(fields_of_der(parts.subject, parts.alternative_names))


def test_the_fields_are_the_attributes_of_the_subject_and_the_alternative_names() -> None:
    der = certificate(hosts=["a.example", "b.example"], uris=[SPIFFE])
    assert fields(der) == {
        "CN=alice", "OU=payments", "OU=ops", "O=kustos", "DNS=a.example", "DNS=b.example", f"URI={SPIFFE}",
    }  # fmt: skip
    assert fields(certificate(address=None)) == {"CN=alice", "OU=payments", "OU=ops", "O=kustos"}


def test_a_name_cannot_look_like_two_attributes() -> None:
    subject = r"CN=x\,OU\=admins,OU=guests"
    assert fields(certificate(subject, address=None)) == {"CN=x,OU=admins", "OU=guests"}
    assert ssl_group_mapper("RULE:OU=(.*)/$1/")(["CN=x,OU=admins", "OU=guests"]) == ("guests",)


def test_each_rule_gives_a_group_for_each_field_that_it_matches() -> None:
    groups_of = ssl_group_mapper(RULES)
    names = ["CN=alice", "OU=payments", "OU=ops", "DNS=a.example", "DNS=b.example", f"URI={SPIFFE}"]
    assert groups_of(names) == ("EXAMPLE", "ns-prod", "ops", "payments")
    assert groups_of(["CN=alice", "O=ops", "URI=spiffe://other.org/ns/prod/sa/x"]) == ()
    assert ssl_group_mapper("")(names) == ()


def test_a_certificate_gives_the_groups_of_its_client() -> None:
    principal_of = certificate_principals(PRINCIPALS, RULES)
    principal = principal_of("::1", certificate(uris=[SPIFFE]))
    assert str(principal) == "User:CN=alice,OU=payments,OU=ops,O=kustos"
    assert principal.groups == ("ns-prod", "ops", "payments")
    assert principal_of("::1", None).groups == ()
    assert certificate_principals(PRINCIPALS)("::1", certificate()).groups == ()


def test_a_certificate_whose_groups_cannot_be_used_gives_no_principal() -> None:
    principal_of = certificate_principals(PRINCIPALS, "RULE:OU=(.*)/$1/")
    for unit in ("*", "a\tb", "o" * 257):
        builder = x509.NameAttribute(x509.NameOID.ORGANIZATIONAL_UNIT_NAME, unit, _validate=False)
        holder = Authority().issue(x509.Name([builder]))
        with pytest.raises(TlsError, match="gives no principal: a group's name"):
            principal_of("::1", holder.certificate.public_bytes(Encoding.DER))


def test_fields_that_no_rule_can_judge_are_refused() -> None:
    groups_of = ssl_group_mapper("RULE:OU=(.*)/$1/")
    with pytest.raises(NoMatchingRuleError, match="more than"):
        groups_of(["CN=x"] * (MAX_FIELDS + 1))
    with pytest.raises(NoMatchingRuleError, match="longer than"):
        groups_of(["CN=" + "x" * MAX_NAME_CHARACTERS])
    with pytest.raises(NoMatchingRuleError, match="line break"):
        groups_of(["CN=x\ny"])
    many = ssl_group_mapper(",".join(f"RULE:OU=(.*)/{number}-$1/" for number in range(3)))
    with pytest.raises(GroupError, match=f"more than {GROUPS_MAX}"):
        many([f"OU={number}" for number in range(GROUPS_MAX // 3 + 1)])


@pytest.mark.parametrize("rules", ["DEFAULT", "RULE:OU=(.*)/$1/,DEFAULT", "OU", "RULE:(/$1/"])
def test_rules_that_are_not_rules_for_groups_are_refused(rules: str) -> None:
    with pytest.raises(MappingRuleError):
        ssl_group_mapper(rules)


@pytest.mark.parametrize("name", [b"", b"\x86", b"\x86\x01\xff", b"\x86\x01a\x86\x01b"])
def test_names_that_cannot_be_read_are_refused(name: bytes) -> None:
    with pytest.raises(NoMatchingRuleError, match="a name in the certificate"):
        fields_of_der(bytes.fromhex("3000"), [name])
