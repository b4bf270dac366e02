"""Bearer tokens: the initial response, tokens that nobody signed, claims that the provider signed, key sets.

The first byte chooses.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

from fuzz.targets import require
from kustos.auth import (
    AcceptedToken,
    InitialResponseError,
    OAuthBearerServer,
    RefusedToken,
    SaslAuthenticationError,
    SaslMechanismError,
)
from kustos.auth.jwt import (
    JwksError,
    TokenClaimRules,
    TokenParts,
    UnsecuredTokenRules,
    parse_jwks,
    validate_signed,
    validate_unsecured,
)
from kustos.auth.jwt.keys import ALGORITHMS, KEYS_MAX
from kustos.auth.mechanisms.base import Proven
from kustos.auth.mechanisms.oauthbearer_messages import EXTENSIONS_MAX, InitialResponse
from testkit.bearer_tokens import (
    AUDIENCE,
    ISSUER,
    NOW_S,
    claims,
    compact,
    jwks,
    known_keys,
    public,
    with_hmac,
    without_signature,
)

INPUT_MAX_BYTES: Final = 4_096
NOW_MS: Final = NOW_S * 1000
RULES: Final = TokenClaimRules(frozenset({AUDIENCE}), ISSUER)
KEYS: Final = known_keys("ec256-1", "rsa-1")
GOOD: Final = (compact(claims(), "ec256-1", "ES256"), compact(claims()))
SIGNED: Final = frozenset(token.rpartition(".")[0] for token in GOOD)
UNSECURED: Final = UnsecuredTokenRules(required_scopes=())
_SEPARATOR: Final = b"\xff"


def check(data: bytes) -> None:
    """Raise if a token proves what nobody signed, or what its claims do not say."""
    kinds = {b"m": message, b"t": unsigned, b"n": unsecured, b"p": provided, b"k": key_set, b"x": exchange}
    kinds.get(data[:1], message)(data[1:])


def message(data: bytes) -> None:
    """Require that an initial response survives being written and read again."""
    try:
        found = InitialResponse.parse(data)
    except InitialResponseError:
        return
    require(len(found.extensions) <= EXTENSIONS_MAX, "there are more extensions than allowed")
    require(InitialResponse.parse(found.encode()) == found, "a message changes when it is written")


def unsigned(data: bytes) -> None:
    """Require that only what the provider signed is believed, however it is written."""
    text = data.decode("latin-1")
    outcome = validate_signed(text, KEYS, RULES, NOW_MS).outcome
    if isinstance(outcome, AcceptedToken):
        require(text.rpartition(".")[0] in SIGNED, "a token is believed that nobody signed")


def unsecured(data: bytes) -> None:
    """Require that a token that is believed without a signature is still valid, and has none."""
    text = data.decode("latin-1")
    outcome = validate_unsecured(text, UNSECURED, NOW_MS)
    if isinstance(outcome, AcceptedToken):
        parts = TokenParts.parse(text)
        require(not parts.has_signature and parts.header["alg"] == "none", "it has an algorithm")
        require(outcome.expires_at_ms > NOW_MS, "a token is believed that has expired")
        require(outcome.principal_name == parts.claims["sub"], "it names another")


def provided(data: bytes) -> None:
    """Sign these bytes as claims; what is believed must say so in the eyes of a plain reader."""
    payload = data.decode("utf-8", "replace")
    outcome = validate_signed(compact(payload, "ec256-1", "ES256"), KEYS, RULES, NOW_MS).outcome
    if isinstance(outcome, RefusedToken):
        return
    found: dict[str, Any] = json.loads(payload)
    audience = found["aud"]
    require(
        audience == AUDIENCE or (AUDIENCE in audience and not isinstance(audience, str)), "it is for another"
    )
    require(found["iss"] == ISSUER, "it is by another")
    require(found["exp"] > NOW_S - RULES.clock_skew_seconds, "it has expired")
    require(found["iat"] <= found["exp"], "it is issued after its end")
    require(
        outcome.principal_name == found["sub"].strip("".join(map(chr, range(33)))) != "", "it names nobody"
    )


def key_set(data: bytes) -> None:
    """Require that a key set has few keys, of the known kinds alone."""
    try:
        found = parse_jwks(data)
    except JwksError:
        return
    require(len(found.keys) + found.left_out <= KEYS_MAX, "a set has more keys than allowed")
    kinds = frozenset[str]().union(*ALGORITHMS.values())
    require(all(key.kind in kinds for key in found.keys), "a key is of an unknown kind")
    require(all("PRIVATE" not in repr(key.key).upper() for key in found.keys), "a private half is kept")


def exchange(data: bytes) -> None:
    """Require that nobody is proven by messages without a token of the provider."""
    server = OAuthBearerServer(lambda token: validate_signed(token, KEYS, RULES, NOW_MS).outcome)
    for token in data.split(_SEPARATOR, 3):
        try:
            step = server.respond(token)
        except (SaslAuthenticationError, SaslMechanismError):
            return
        if isinstance(step, Proven):
            require(any(signed.encode() in token for signed in SIGNED), "somebody is proven without a token")
            return


def seeds() -> Iterator[bytes]:
    """Yield tokens, messages and key sets, good and bad."""
    bad = (without_signature(claims()), with_hmac(claims(), json.dumps(public("rsa-1")).encode(), "rsa-1"))
    for token in (*GOOD, *bad):
        yield b"t" + token.encode()
        yield b"n" + token.encode()
        yield b"m" + f"n,a=alice,\x01auth=Bearer {token}\x01x=y\x01\x01".encode()
        yield b"x" + f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        yield b"x" + f"n,,\x01auth=Bearer {token}x\x01\x01".encode() + _SEPARATOR + b"\x01"
    for changed in (
        {},
        {"aud": ["x", AUDIENCE]},
        {"exp": NOW_S - 40},
        {"nbf": NOW_S},
        {"sub": " "},
        {"scope": ["a"]},
    ):
        yield b"p" + json.dumps(claims(**changed)).encode()
    yield b"k" + jwks(public("rsa-1"), public("ec256-1"), public("ed-1"))
    yield b"k" + jwks({"kty": "oct", "k": base64.urlsafe_b64encode(b"s" * 32).decode()})
