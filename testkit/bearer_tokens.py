"""Tokens of a provider with known keys: well formed, and as an attacker writes them."""

import base64
import hmac
import json
from functools import cache
from typing import Any

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from kustos.auth.jwt import SigningKeys, parse_jwks

ISSUER = "https://provider.example"
AUDIENCE = "kafka"
NOW_S = 1_800_000_000


@cache
def key(name: str) -> Any:
    """Return the private key with this id; its first letters say which kind."""
    options: Any = {"kid": name, "use": "sig"}
    if name.startswith("rsa"):
        return RSAKey.generate_key(2048, options)
    if name.startswith("ed"):
        return OKPKey.generate_key("Ed25519", options)
    curve = {"ec256": "P-256", "ec384": "P-384", "ec521": "P-521"}[name.partition("-")[0]]
    return ECKey.generate_key(curve, options)


def public(name: str, **more: Any) -> dict[str, Any]:
    """Return the public half as an entry of a key set; None in `more` takes a member away."""
    entry = dict(key(name).as_dict(private=False)) | more
    return {member: value for member, value in entry.items() if value is not None}


def jwks(*entries: dict[str, Any]) -> bytes:
    """Return a key set of these entries."""
    return json.dumps({"keys": entries}).encode()


def known_keys(*names: str) -> SigningKeys:
    """Return the public keys with these ids."""
    return parse_jwks(jwks(*map(public, names)))


def base64_url(data: bytes | str) -> str:
    """Return Base64 for URLs without padding."""
    data = data.encode() if isinstance(data, str) else data
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def as_json(value: dict[str, Any] | str) -> str:
    """Return JSON; a text is JSON already."""
    return value if isinstance(value, str) else json.dumps(value)


def claims(now_s: int = NOW_S, **more: Any) -> dict[str, Any]:
    """Return valid claims; None takes one away."""
    valid = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now_s - 10, "exp": now_s + 3600} | more
    return {name: value for name, value in valid.items() if value is not None}


def compact(
    payload: dict[str, Any] | str,
    name: str = "rsa-1",
    algorithm: str = "RS256",
    header: dict[str, Any] | str | None = None,
) -> str:
    """Return a token signed with a key; the header need not say so."""
    header = {"alg": algorithm, "kid": name, "typ": "JWT"} if header is None else header
    signed = f"{base64_url(as_json(header))}.{base64_url(as_json(payload))}"
    signature = JWSRegistry.algorithms[algorithm].sign(signed.encode(), key(name))
    return f"{signed}.{base64_url(signature)}"


def without_signature(payload: dict[str, Any] | str, header: dict[str, Any] | str | None = None) -> str:
    """Return a token with the algorithm `none`, or with another header, and no signature."""
    return f"{base64_url(as_json(header or {'alg': 'none'}))}.{base64_url(as_json(payload))}."


def with_hmac(payload: dict[str, Any], secret: bytes, key_id: str) -> str:
    """Return a token whose HMAC has the public key as its secret: the classic confusion of algorithms."""
    header = {"alg": "HS256", "kid": key_id}
    signed = f"{base64_url(as_json(header))}.{base64_url(as_json(payload))}"
    return f"{signed}.{base64_url(hmac.digest(secret, signed.encode(), 'sha256'))}"
