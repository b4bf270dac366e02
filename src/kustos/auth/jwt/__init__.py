"""JSON Web Tokens as bearer tokens: their parts, the keys that sign them, and their validation."""

from kustos.auth.jwt.groups import GROUPS_CLAIM_PATH
from kustos.auth.jwt.keys import (
    JWKS_MAX_BYTES,
    NO_KEYS,
    JwksError,
    SigningKey,
    SigningKeys,
    load_signatures,
    parse_jwks,
)
from kustos.auth.jwt.parts import TOKEN_MAX_CHARACTERS, TokenError, TokenParts
from kustos.auth.jwt.signed import (
    TokenClaimRules,
    TokenVerdict,
    validate_signed,
)
from kustos.auth.jwt.unsecured import UnsecuredTokenRules, validate_unsecured

__all__ = [
    "GROUPS_CLAIM_PATH",
    "JWKS_MAX_BYTES",
    "NO_KEYS",
    "TOKEN_MAX_CHARACTERS",
    "JwksError",
    "SigningKey",
    "SigningKeys",
    "TokenClaimRules",
    "TokenError",
    "TokenParts",
    "TokenVerdict",
    "UnsecuredTokenRules",
    "load_signatures",
    "parse_jwks",
    "validate_signed",
    "validate_unsecured",
]
