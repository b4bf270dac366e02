"""The public keys of a token's issuer: a JSON Web Key Set (RFC 7517), and the selection of the key for a
token.

A key is used only with the algorithms of its type, so a token cannot make kustos use a public key as an HMAC
secret. Symmetric keys, encryption keys and RSA keys below 2048 bits are ignored.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Final

from kustos.extras import needs_extra

JWKS_MAX_BYTES: Final = 1_048_576
"""The largest accepted key set; a set of ten RSA keys with certificates has 30,000 bytes."""

KEYS_MAX: Final = 100
"""The maximum number of keys in a set. Providers have one to ten."""

KEYS_TRIED_MAX: Final = 4
"""The maximum number of keys tried for a token without a key id: the old and the new key of a rotation, and
some more."""

RSA_BITS_MIN: Final = 2048
"""As in Kafka; RFC 7518 requires it of RS256."""

ALGORITHMS: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), frozenset({"RSA"})),
    "ES256": frozenset({"P-256"}),
    "ES384": frozenset({"P-384"}),
    "ES512": frozenset({"P-521"}),
    "EdDSA": frozenset({"Ed25519", "Ed448"}),
    "Ed25519": frozenset({"Ed25519"}),
}
"""Accepted algorithm -> the kinds of its keys."""

_KINDS: Final = frozenset[str]().union(*ALGORITHMS.values())
_PURPOSE: Final = "a login by OAUTHBEARER"


class JwksError(ValueError):
    """The text is not a key set; the message never contains a part of it."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key. `kind` is `RSA` or the curve; `algorithm` restricts it to one, None does not."""

    key_id: str | None
    kind: str
    algorithm: str | None
    key: Any = field(repr=False, compare=False)

    def fits(self, algorithm: str) -> bool:
        """Return whether a token of this algorithm may be verified with this key."""
        return self.kind in ALGORITHMS.get(algorithm, ()) and self.algorithm in {None, algorithm}


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """A key set. `left_out` counts the entries that are not usable keys."""

    keys: tuple[SigningKey, ...] = ()
    left_out: int = 0

    def knows(self, key_id: str) -> bool:
        """Return whether some key has this id."""
        return any(key.key_id == key_id for key in self.keys)

    def candidates(self, algorithm: str, key_id: str | None) -> tuple[SigningKey, ...]:
        """Return the keys that a token may be signed with, at most `KEYS_TRIED_MAX`."""
        fitting = (key for key in self.keys if key.fits(algorithm) and key_id in {None, key.key_id})
        return tuple(fitting)[:KEYS_TRIED_MAX]


NO_KEYS: Final = SigningKeys()


def load_signatures() -> None:
    """Import the modules for signatures, so the first token does not wait for the import.

    Raise `ExtraMissingError` if it is not installed.
    """
    with needs_extra("oauth", _PURPOSE):
        from joserfc import jwk, jws  # noqa: F401


def parse_jwks(data: bytes) -> SigningKeys:
    """Return the usable keys of a key set; raise `JwksError`, or `ExtraMissingError` without joserfc."""
    if len(data) > JWKS_MAX_BYTES:
        raise JwksError(f"the key set is larger than {JWKS_MAX_BYTES} bytes")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise JwksError("the key set is not JSON") from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise JwksError("the key set has no list `keys`")
    if len(entries) > KEYS_MAX:
        raise JwksError(f"the key set has more than {KEYS_MAX} keys")
    found = [_signing_key(entry) for entry in entries]
    keys = tuple(key for key in found if key is not None)
    return SigningKeys(keys, len(found) - len(keys))


def _signing_key(entry: dict[str, Any]) -> SigningKey | None:
    """Return the key of an entry, None if it is not a supported signature key."""
    with needs_extra("oauth", _PURPOSE):
        from joserfc import jwk
        from joserfc.errors import JoseError
    key_id, algorithm, kind = entry.get("kid"), entry.get("alg"), entry.get("kty")
    texts = ("kid", "alg", "use", "kty", "crv")
    if not all(entry.get(name) is None or isinstance(entry[name], str) for name in texts):
        return None
    if kind in {"EC", "OKP"}:
        kind = entry.get("crv")
    if kind not in _KINDS or entry.get("use") not in {None, "sig"}:
        return None
    # other members, such as a private half that was published by mistake, are not needed
    public: dict[str, Any] = {
        name: entry[name] for name in ("kty", "crv", "n", "e", "x", "y") if name in entry
    }
    try:
        if kind == "RSA" and _bits(public["n"]) < RSA_BITS_MIN:
            return None
        key = jwk.import_key(public)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return SigningKey(key_id, kind, algorithm, key)


def _bits(modulus: str) -> int:
    data = base64.urlsafe_b64decode(modulus + "=" * (-len(modulus) % 4))
    return int.from_bytes(data).bit_length()


def is_signed_by(key: SigningKey, token: str, algorithm: str) -> bool:
    """Return whether the key signed this compact token with this algorithm, which it `fits`.

    The caller has parsed the token (`TokenParts`): its header names the algorithm and has no critical
    extension.
    """
    with needs_extra("oauth", _PURPOSE):
        from joserfc.errors import JoseError
        from joserfc.jws import JWSRegistry
    signed, _, signature = token.rpartition(".")
    try:
        model = JWSRegistry.algorithms[algorithm]
        model.check_key(key.key)
        decoded = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
        return model.verify(signed.encode(), decoded, key.key)
    except (JoseError, ValueError, TypeError, KeyError):
        return False
