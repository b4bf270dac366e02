"""The validation of a token without a signature (Kafka's OAuthBearerUnsecuredValidatorCallbackHandler).

Any client can write such a token: it is for tests of clients, and used only if the settings enable it. It is
stricter than Kafka: it does not convert claims of other types to text, and each name may occur only once. It
accepts URL-safe Base64, which Kafka 4.3 does not accept here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kustos.auth.errors import JaasError
from kustos.auth.jwt.groups import ClaimPath, groups_in
from kustos.auth.jwt.parts import TokenError, TokenParts
from kustos.auth.jwt.signed import BLANKS
from kustos.auth.mechanisms.oauthbearer import (
    INSUFFICIENT_SCOPE,
    INVALID_TOKEN,
    AcceptedToken,
    RefusedToken,
)

_INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class UnsecuredTokenRules:
    """The options `unsecuredValidator...` of the listener's OAuthBearerLoginModule, and where groups are."""

    principal_claim_name: str = "sub"
    scope_claim_name: str = "scope"
    required_scopes: tuple[str, ...] = ()
    clock_skew_ms: int = 0
    groups_claim_path: ClaimPath | None = None

    @classmethod
    def from_jaas_options(
        cls, options: Mapping[str, str], groups_claim_path: ClaimPath | None = None
    ) -> "UnsecuredTokenRules":
        """Return the rules; raise `JaasError` naming the wrong option."""

        def text(name: str) -> str:
            return options.get(f"unsecuredValidator{name}", "").strip()

        skew = text("AllowableClockSkewMs") or "0"
        if not (skew.isascii() and skew.isdigit() and len(skew) <= 10 and int(skew) <= _INT32_MAX):
            raise JaasError(
                "the option `unsecuredValidatorAllowableClockSkewMs` is not a number of milliseconds"
            )
        return cls(
            text("PrincipalClaimName") or "sub",
            text("ScopeClaimName") or "scope",
            tuple(text("RequiredScope").split()),
            int(skew),
            groups_claim_path,
        )


def validate_unsecured(token: str, rules: UnsecuredTokenRules, now_ms: int) -> AcceptedToken | RefusedToken:
    """Return the identity that the token claims at this wall time, or the reason why it is refused."""
    parts: TokenParts | None = None
    try:
        parts = TokenParts.parse(token)
        expires_ms = _require_times(parts, rules.clock_skew_ms, now_ms)
        name = _name(parts, rules.principal_claim_name)
        scopes = _scopes(parts.claims.get(rules.scope_claim_name), rules.scope_claim_name)
        groups = groups_in(parts.claims, rules.groups_claim_path)
    except TokenError as error:
        claimed = None if parts is None else parts.claimed_name(rules.principal_claim_name)
        was_judged = parts is not None
        return RefusedToken(INVALID_TOKEN, str(error), claimed_name=claimed, was_judged=was_judged)
    if not scopes.issuperset(rules.required_scopes):
        # as Java writes a list
        missing = f"[{', '.join(rules.required_scopes)}]"
        return RefusedToken(INSUFFICIENT_SCOPE, "a required scope is missing", missing, name)
    return AcceptedToken(name, expires_ms, scopes, groups)


def _name(parts: TokenParts, claim: str) -> str:
    """Return the principal's name; raise `TokenError` if there is none, or if the token is signed."""
    if parts.header.get("alg") != "none" or parts.has_signature:
        raise TokenError("it has a signature, or another algorithm than `none`")
    name = parts.text_of(claim)
    if name is None or not name.strip(BLANKS):
        raise TokenError(f"the claim `{claim}` is missing or empty")
    return name


def _require_times(parts: TokenParts, skew_ms: int, now_ms: int) -> int:
    """Return when the token expires (ms, wall time); raise `TokenError` if it is not valid now."""
    expires_s, issued_s = parts.number_of("exp"), parts.number_of("iat")
    if expires_s is None:
        raise TokenError("the claim `exp` is missing")
    if now_ms - skew_ms >= 1000 * expires_s:
        raise TokenError("it has expired")
    if issued_s is not None and (issued_s >= expires_s or 1000 * issued_s > now_ms + skew_ms):
        raise TokenError("it was issued in the future, or expires before that")
    return round(1000 * expires_s)


def _scopes(claim: Any, name: str) -> frozenset[str]:
    """Return the non-empty scopes; a string is one scope, even if it contains blanks."""
    texts = [claim] if isinstance(claim, str) else claim
    if texts is None:
        return frozenset()
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TokenError(f"the claim `{name}` is neither a text nor a list of texts")
    return frozenset(stripped for text in texts if (stripped := text.strip(BLANKS)))
