"""The validation of a signed token, as Kafka's BrokerJwtValidator does it with jose4j.

A pure function of token, keys, rules and time. First the signature, then the claims. It is stricter than
Kafka: it refuses tokens issued in the future, nested and encrypted tokens, and tokens with critical headers;
it uses a key only with the algorithm that the key names, and never uses HMAC keys. If no audience is
expected, Kafka refuses every token with an audience; kustos ignores the audience.
"""

from dataclasses import dataclass
from typing import Any, Final

from kustos.auth.jwt.groups import GROUPS_CLAIM_PATH, ClaimPath, groups_in
from kustos.auth.jwt.keys import ALGORITHMS, SigningKey, SigningKeys, is_signed_by
from kustos.auth.jwt.parts import SECONDS_MAX, TokenError, TokenParts
from kustos.auth.mechanisms.oauthbearer import INVALID_TOKEN, AcceptedToken, RefusedToken
from kustos.settings import INT32_MAX, TEXT, Scope, Setting, list_of, whole_number

KEY_ID_MAX_CHARACTERS: Final = 1000
"""The longest key id that is looked up, as in Kafka."""

BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's `trim` removes."""


@dataclass(frozen=True, slots=True)
class TokenClaimRules:
    """The required claims of a token. Without an expected audience or issuer, that claim is not checked."""

    expected_audiences: frozenset[str] = Setting(
        "sasl.oauthbearer.expected.audience",
        list_of().into(frozenset[str]),
        frozenset(),
        "Bearer tokens",
        "The claim `aud` must have one of these. It must be set, as from Kafka 4.4 on, unless "
        "`sasl.oauthbearer.allow.unverified.audience` is true.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).field()
    expected_issuer: str | None = Setting(
        "sasl.oauthbearer.expected.issuer",
        TEXT,
        None,
        "Bearer tokens",
        "The claim `iss` must be this. It must be set, as from Kafka 4.4 on, unless "
        "`sasl.oauthbearer.allow.unverified.issuer` is true.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).optional_field()
    clock_skew_seconds: int = Setting(
        "sasl.oauthbearer.clock.skew.seconds",
        whole_number(0, INT32_MAX, "seconds"),
        30,
        "Bearer tokens",
        "How far the clocks of provider and node may differ, for the claims `iat` and `nbf`. A token whose "
        "`exp` has passed can no longer log in.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).field()
    scope_claim_name: str = Setting(
        "sasl.oauthbearer.scope.claim.name",
        TEXT,
        "scope",
        "Bearer tokens",
        "The claim with the scopes.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).field()
    sub_claim_name: str = Setting(
        "sasl.oauthbearer.sub.claim.name",
        TEXT,
        "sub",
        "Bearer tokens",
        "The claim that names the principal.",
        scope=Scope.MECHANISM,
        since="0.2.0",
    ).field()
    groups_claim_path: ClaimPath | None = GROUPS_CLAIM_PATH.optional_field()


@dataclass(frozen=True, slots=True)
class TokenVerdict:
    """The outcome, and the key id of the token if the key set does not contain it, else None."""

    outcome: AcceptedToken | RefusedToken
    unknown_key_id: str | None = None


def validate_signed(token: str, keys: SigningKeys, rules: TokenClaimRules, now_ms: int) -> TokenVerdict:
    """Return the identity that the token proves at this wall time, or the reason why it is refused; raise
    only for bugs of kustos."""
    parts: TokenParts | None = None
    try:
        parts = TokenParts.parse(token)
        algorithm, key_id = _header(parts)
        if key_id is not None and not keys.knows(key_id):
            refused = _refused("no key with its key id is known", parts, rules)
            return TokenVerdict(refused, key_id if len(key_id) <= KEY_ID_MAX_CHARACTERS else None)
        _require_signature(token, keys.candidates(algorithm, key_id), algorithm)
        return TokenVerdict(_accepted(parts, rules, now_ms // 1000))
    except TokenError as error:
        return TokenVerdict(_refused(str(error), parts, rules))


def _refused(reason: str, parts: TokenParts | None, rules: TokenClaimRules) -> RefusedToken:
    name = None if parts is None else parts.claimed_name(rules.sub_claim_name)
    return RefusedToken(INVALID_TOKEN, reason, claimed_name=name, was_judged=parts is not None)


def _header(parts: TokenParts) -> tuple[str, str | None]:
    """Return algorithm and key id; raise `TokenError`."""
    algorithm, key_id = parts.header.get("alg"), parts.header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS or not parts.has_signature:
        # the message names the algorithm only if it is a known one, because the peer wrote it
        raise TokenError(f"it is not signed with one of the algorithms {', '.join(ALGORITHMS)}")
    if key_id is not None and not isinstance(key_id, str):
        raise TokenError("its key id is not text")
    if "crit" in parts.header or "b64" in parts.header:
        # RFC 7797 makes `b64` critical: it changes the signed content
        raise TokenError("it has critical headers, which are not supported")
    content_type = parts.header.get("cty")
    if isinstance(content_type, str) and content_type.lower().removeprefix("application/") == "jwt":
        raise TokenError("it contains a nested token, which is not supported")
    return algorithm, key_id


def _require_signature(token: str, candidates: tuple[SigningKey, ...], algorithm: str) -> None:
    if not candidates:
        raise TokenError(f"no key fits its algorithm `{algorithm}`")
    if not any(is_signed_by(key, token, algorithm) for key in candidates):
        raise TokenError("its signature is wrong")


def _accepted(parts: TokenParts, rules: TokenClaimRules, now_s: int) -> AcceptedToken:
    expires_s = _require_times(parts, rules.clock_skew_seconds, now_s)
    for claim in ("sub", "jti", "iss"):
        parts.text_of(claim)
    _require_audience(parts.claims.get("aud"), rules.expected_audiences)
    if rules.expected_issuer is not None and parts.text_of("iss") != rules.expected_issuer:
        raise TokenError("its issuer is not the expected one")
    name = (parts.text_of(rules.sub_claim_name) or "").strip(BLANKS)
    if not name:
        raise TokenError(f"the claim `{rules.sub_claim_name}` is missing or empty")
    scopes = _scopes(parts.claims.get(rules.scope_claim_name), rules.scope_claim_name)
    groups = groups_in(parts.claims, rules.groups_claim_path)
    return AcceptedToken(name, expires_s * 1000, scopes, groups)


def _require_times(parts: TokenParts, skew_s: int, now_s: int) -> int:
    """Return when the token expires (seconds, wall time); raise `TokenError` if it is not valid now."""
    times = {claim: parts.number_of(claim) for claim in ("exp", "iat", "nbf")}
    # as in Kafka, fractions of a second are truncated
    seconds = {claim: int(value) for claim, value in times.items() if value is not None}
    for claim in ("exp", "iat"):
        if not 0 <= seconds.get(claim, -1) <= SECONDS_MAX:
            raise TokenError(f"the claim `{claim}` is missing, or is before 1970")
    expires_s = seconds["exp"]
    if now_s - skew_s >= expires_s:
        raise TokenError("it has expired")
    for claim in ("iat", "nbf"):
        if seconds.get(claim, 0) > expires_s:
            raise TokenError(f"it expires before the time of its claim `{claim}`")
        if seconds.get(claim, 0) > now_s + skew_s:
            raise TokenError(f"the time of its claim `{claim}` has not come yet")
    return expires_s


def _require_audience(claim: Any, expected: frozenset[str]) -> None:
    audiences = [claim] if isinstance(claim, str) else claim
    if audiences is not None and not _is_texts(audiences):
        raise TokenError("its audience is neither a text nor a list of texts")
    if expected and not expected.intersection(audiences or ()):
        raise TokenError("its audience is not the expected one")


def _scopes(claim: Any, name: str) -> frozenset[str]:
    """Return the scopes; a string is one scope, even if it contains blanks, as in Kafka."""
    if isinstance(claim, str):
        claim = [claim]
    if not isinstance(claim, list):
        return frozenset()
    if not _is_texts(claim):
        raise TokenError(f"the claim `{name}` contains a value that is not text")
    scopes = [text.strip(BLANKS) for text in claim]
    if not all(scopes) or len(set(scopes)) != len(scopes):
        raise TokenError(f"the claim `{name}` has an empty scope, or one twice")
    return frozenset(scopes)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
