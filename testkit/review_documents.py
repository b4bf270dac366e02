"""Documents of reviews, made by hand: two ACLs, rows of entitlements, and keys that sign."""

from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from kustos.acl.forms import texts_of
from kustos.pipeline.deciding import AclsInForce
from kustos.signoff.document import Document, review_document
from testkit.review_rows import AS_OF, acl

READ_PAY = acl("User:alice", "READ", "TOPIC", "pay.", prefixed=True)
WRITE_OLD = acl("User:bob", "WRITE", "TOPIC", "old")
ACLS = AclsInForce.of("prod", [READ_PAY, WRITE_OLD], super_users="User:root")


def entitlement_row(principal: str, operation: str, name: str, **changed: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "as_of": AS_OF,
        "team": None,
        "principal": principal,
        "operation": operation,
        "resource_type": "TOPIC",
        "resource_name": name,
        "pattern_type": "LITERAL",
        "host": "*",
        "breadth": "NAMED",
        "basis": "MatchingAcl",
        "is_implied": False,
        "effect": "WHOLE",
        "denied_by": [],
        "deny_count": 0,
        "granted_by": [],
        "granted_since": None,
        "principal_count": 1,
        "name_count": 1,
        "use_count": 0,
        "used_by_count": 0,
        "used_name_count": 0,
        "last_used": None,
        "dormant_days": None,
        "is_dormant": True,
    }
    return row | changed


def keys(kind: str) -> tuple[bytes, bytes]:
    made: Any = (
        ed25519.Ed25519PrivateKey.generate() if kind == "Ed25519" else ec.generate_private_key(ec.SECP256R1())
    )
    return (
        made.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        made.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
    )


AT = datetime(2026, 12, 1, 9, tzinfo=UTC)


OF_PAY: dict[str, Any] = {
    "granted_by": [texts_of(READ_PAY)],
    "pattern_type": "PREFIXED",
    "breadth": "PREFIXED",
    "name_count": 2,
}
ROWS = [
    entitlement_row("User:alice", "READ", "pay.", use_count=3, last_used=AT, **OF_PAY),
    entitlement_row("User:alice", "DESCRIBE", "pay.", is_implied=True, use_count=1, last_used=AT, **OF_PAY),
    entitlement_row("User:bob", "WRITE", "old", granted_by=[texts_of(WRITE_OLD)]),
    entitlement_row("User:root", "ALL", "*", resource_type="ANY", pattern_type="ANY", basis="SuperUser"),
]


def document() -> Document:
    return review_document(ROWS, ACLS, as_of=AS_OF, dormant_days=90, created_at=AT)
