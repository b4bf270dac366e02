"""A review signed by a key: a compact JWS (RFC 7515) whose payload is the document's canonical JSON.

Ed25519 keys sign with `Ed25519` (RFC 9864), P-256 keys with `ES256`; no other algorithm is accepted, not even
one in the header. Needs `pip install 'kustos[sign]'`.
"""

import json
from typing import Any, Final

from kustos.extras import needs_extra
from kustos.signoff.document import Document, canonical_json, read_review, verify_review
from kustos.signoff.errors import SignoffError

TYPE: Final = "kustos-access-review+json"
"""The header's `typ`: a signature of something else by the same key is none of a review."""

ALGORITHMS: Final = {"Ed25519": "Ed25519", "P-256": "ES256"}
"""By the curve of the key."""

KEY_BYTES_MAX: Final = 65_536
"""Longest key file read; real ones have a few hundred bytes."""


def sign_review(document: Document, private_key: bytes, password: bytes | None = None) -> str:
    """Return the signed review, one line; the key is PEM or a JWK. Raises `SignoffError`.

    The document is checked first (`verify_review`); an open review may be signed too.
    """
    verify_review(document)
    key, algorithm = _key(private_key, password)
    if not key.is_private:
        raise SignoffError("this is a public key, a private one signs")
    header = {"alg": algorithm, "typ": TYPE, "kid": key.thumbprint()}
    signed: str = _jws().serialize_compact(header, canonical_json(document), key, algorithms=[algorithm])
    return signed + "\n"


def verify_signed_review(text: str, public_key: bytes) -> Document:
    """Return the document of a signed review that this key signed; raise `SignoffError` for another text."""
    jws = _jws()
    from joserfc.errors import JoseError

    key, algorithm = _key(public_key, None)
    try:
        found = jws.deserialize_compact(text.strip(), key, algorithms=[algorithm])
    except (JoseError, ValueError, UnicodeError) as error:
        raise SignoffError(f"the signature is not one of this key: {type(error).__name__}") from None
    if found.protected.get("typ") != TYPE:
        raise SignoffError(f"what is signed is not a review, its type is not `{TYPE}`")
    try:
        return read_review(found.payload.decode("ascii"))
    except UnicodeDecodeError:
        raise SignoffError("what is signed is not a review, it is not ASCII") from None


def _jws() -> Any:
    with needs_extra("sign", "a signature"):
        from joserfc import jws
    return jws


def _key(content: bytes, password: bytes | None) -> tuple[Any, str]:
    _jws()
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey

    if len(content) > KEY_BYTES_MAX:
        raise SignoffError(f"a key has at most {KEY_BYTES_MAX} bytes")
    for kind in (OKPKey, ECKey):
        key = _imported(kind, content, password, JoseError)
        curve = None if key is None else key.curve_name
        if curve in ALGORITHMS:
            return key, ALGORITHMS[curve]
    # the cause is not reported: it could contain a part of the key
    raise SignoffError(
        "this is not an Ed25519 or P-256 key in PEM or as a JWK, or its password is another one"
    )


def _imported(kind: Any, content: bytes, password: bytes | None, refused: type[Exception]) -> Any:
    try:
        if content.lstrip()[:1] == b"{":
            return kind.import_key(json.loads(content))
        return kind.import_key(content, password=password)
    except (refused, ValueError, TypeError, KeyError, AttributeError):
        return None
