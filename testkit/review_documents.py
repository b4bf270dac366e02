"""Documents of reviews, made by hand: two ACLs, rows of entitlements, and keys that sign."""

from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from kustos.pipeline.deciding import AclsInForce
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
