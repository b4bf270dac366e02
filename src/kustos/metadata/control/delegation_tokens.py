"""Delegation tokens made, renewed, ended, described and swept: pure functions of an image.

After Kafka's `DelegationTokenControlManager`: its codes, the order of its checks, its times. It differs in
one thing: a renewal whose time would exceed an int64 is cut to it, as a creation is, where Kafka's sum
turns negative and ends the token. No answer has a text, the protocol has no field for one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kio.schema.errors import ErrorCode

from kustos.acl import KafkaPrincipal
from kustos.metadata.control.results import ApiError, ControlResult
from kustos.metadata.errors import RecordError
from kustos.metadata.features import DELEGATION_TOKEN_LEVEL
from kustos.metadata.ids import new_uuid, uuid_text
from kustos.metadata.image import MetadataImage
from kustos.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord, encode_record
from kustos.metadata.tokens import TokenSecret
from kustos.runtime import Entropy

MAX_RECORDS_PER_SWEEP: Final = 1000
"""Kafka's cap of removals in one pass; after a full pass the next one follows at once."""

MAX_TOKEN_SIZE_BYTES: Final = 8 * 1024 * 1024
"""Kafka's log takes no larger batch (`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`); renewers may be many."""

DEFAULT_MAX_LIFETIME_MS: Final = 7 * 24 * 60 * 60 * 1000
DEFAULT_EXPIRY_TIME_MS: Final = 24 * 60 * 60 * 1000
DEFAULT_EXPIRY_CHECK_INTERVAL_MS: Final = 60 * 60 * 1000

_INT64_MAX: Final = 2**63 - 1

TokenFinder = Callable[[MetadataImage, bytes], DelegationTokenRecord | None]
"""(image, HMAC) → the token; see `TokenIndex.find`."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What an operator sets about tokens, by Kafka's keys `delegation.token.*`.

    Without a secret there are no tokens. Raise ValueError for a time below 1 ms.
    """

    secret: TokenSecret | None = None
    max_lifetime_ms: int = DEFAULT_MAX_LIFETIME_MS
    expiry_time_ms: int = DEFAULT_EXPIRY_TIME_MS
    expiry_check_interval_ms: int = DEFAULT_EXPIRY_CHECK_INTERVAL_MS

    def __post_init__(self) -> None:
        for name in ("max_lifetime_ms", "expiry_time_ms", "expiry_check_interval_ms"):
            if getattr(self, name) < 1:
                raise ValueError(f"`delegation.token.{name.replace('_', '.')}` is below 1, use 1 or more")


@dataclass(frozen=True, slots=True)
class TokenCreation:
    """Make a token that acts as `owner`; whether the requester may was decided before.

    `max_lifetime_ms` 0 or less: as long as may be.
    """

    requester: KafkaPrincipal
    owner: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...] = ()
    max_lifetime_ms: int = -1


@dataclass(frozen=True, slots=True)
class TokenRenewal:
    """Let a token live on, by `period_ms` if that is above 0."""

    caller: KafkaPrincipal
    hmac: bytes = field(repr=False)
    period_ms: int = -1


@dataclass(frozen=True, slots=True)
class TokenExpiry:
    """Let a token end in `period_ms`; at once, and for good, if that is negative."""

    caller: KafkaPrincipal
    hmac: bytes = field(repr=False)
    period_ms: int = -1


@dataclass(frozen=True, slots=True)
class TokenCreateResult:
    """The token and its HMAC, or the error."""

    owner: KafkaPrincipal
    requester: KafkaPrincipal
    token: DelegationTokenRecord | None = None
    hmac: bytes = field(default=b"", repr=False)
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class TokenChangeResult:
    """When the token ends now, or the error (then 0, as Kafka sends it)."""

    expiry_timestamp_ms: int = 0
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class TokenDescription:
    """A token as its owner may see it."""

    token: DelegationTokenRecord
    hmac: bytes = field(repr=False)


def create_token(
    image: MetadataImage, asked: TokenCreation, rules: TokenRules, now_ms: int, entropy: Entropy
) -> ControlResult[TokenCreateResult]:
    """Return the record of a new token, and the token with its HMAC."""

    def refused(error: ApiError) -> ControlResult[TokenCreateResult]:
        return ControlResult((), (TokenCreateResult(asked.owner, asked.requester, error=error),))

    secret = _usable(image, asked.requester, rules)
    if isinstance(secret, ApiError):
        return refused(secret)
    if any(renewer.principal_type != KafkaPrincipal.USER_TYPE for renewer in asked.renewers):
        return refused(ApiError(ErrorCode.invalid_principal_type))
    max_timestamp_ms = _later(now_ms, _shorter(rules.max_lifetime_ms, asked.max_lifetime_ms))
    token = DelegationTokenRecord(
        owner=str(asked.owner),
        requester=str(asked.requester),
        renewers=tuple(map(str, asked.renewers)),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=max_timestamp_ms,
        expiration_timestamp_ms=min(max_timestamp_ms, _later(now_ms, rules.expiry_time_ms)),
        token_id=uuid_text(new_uuid(entropy)),
    )
    if not _fits(token):
        return refused(ApiError(ErrorCode.unknown_server_error))
    made = TokenCreateResult(asked.owner, asked.requester, token, secret.hmac(token.token_id))
    return ControlResult((token,), (made,))


def renew_token(
    image: MetadataImage, asked: TokenRenewal, rules: TokenRules, find: TokenFinder, now_ms: int
) -> ControlResult[TokenChangeResult]:
    """Return the record of a token that lives on; it may also come to live shorter."""
    token = _named(image, asked, rules, find)
    if isinstance(token, ApiError):
        return _unchanged(token)
    if is_expired(token, now_ms):
        return _unchanged(ApiError(ErrorCode.delegation_token_expired))
    if not _may_change(token, asked.caller):
        return _unchanged(ApiError(ErrorCode.delegation_token_owner_mismatch))
    return _ending(token, _later(now_ms, _shorter(rules.expiry_time_ms, asked.period_ms)))


def expire_token(
    image: MetadataImage, asked: TokenExpiry, rules: TokenRules, find: TokenFinder, now_ms: int
) -> ControlResult[TokenChangeResult]:
    """Return the record of a token that ends; at once also where it has expired already."""
    token = _named(image, asked, rules, find)
    if isinstance(token, ApiError):
        return _unchanged(token)
    if not _may_change(token, asked.caller):
        return _unchanged(ApiError(ErrorCode.delegation_token_owner_mismatch))
    if asked.period_ms < 0:
        return ControlResult((RemoveDelegationTokenRecord(token.token_id),), (TokenChangeResult(now_ms),))
    if is_expired(token, now_ms):
        return _unchanged(ApiError(ErrorCode.delegation_token_expired))
    return _ending(token, _later(now_ms, asked.period_ms))


def sweep_tokens(image: MetadataImage, now_ms: int) -> ControlResult[bool]:
    """Return the removals of expired tokens, and whether there may be more of them."""
    gone: list[RemoveDelegationTokenRecord] = []
    for token in image.delegation_tokens.values():
        if is_expired(token, now_ms):
            gone.append(RemoveDelegationTokenRecord(token.token_id))
            if len(gone) == MAX_RECORDS_PER_SWEEP:
                break
    return ControlResult(tuple(gone), (len(gone) == MAX_RECORDS_PER_SWEEP,))


def describe_tokens(
    image: MetadataImage, secret: TokenSecret, owners: Sequence[KafkaPrincipal] | None
) -> tuple[TokenDescription, ...]:
    """Return the tokens that concern one of these, or all there are; expired ones until they are swept.

    Whether the caller may see each is decided elsewhere, see `concerns`.
    """
    return tuple(
        TokenDescription(token, secret.hmac(token.token_id))
        for token in image.delegation_tokens.values()
        if owners is None or concerns(token, owners)
    )


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Return whether the token's time is over; in its last millisecond it is not."""
    return min(token.max_timestamp_ms, token.expiration_timestamp_ms) < now_ms


def concerns(token: DelegationTokenRecord, principals: Iterable[KafkaPrincipal]) -> bool:
    """Return whether one of these is owner, requester or renewer: who may see the token without ACLs."""
    known = {*map(KafkaPrincipal.parse, (token.owner, token.requester, *token.renewers))}
    return not known.isdisjoint(principals)


def _usable(image: MetadataImage, caller: KafkaPrincipal, rules: TokenRules) -> TokenSecret | ApiError:
    """Return the secret, or why nothing can be done with tokens at all."""
    if caller.token_authenticated:
        # who got hold of a token must not be able to make it last
        return ApiError(ErrorCode.delegation_token_request_not_allowed)
    if rules.secret is None:
        return ApiError(ErrorCode.delegation_token_auth_disabled)
    if image.metadata_version < DELEGATION_TOKEN_LEVEL:
        return ApiError(ErrorCode.unsupported_version)
    return rules.secret


def _named(
    image: MetadataImage, asked: TokenRenewal | TokenExpiry, rules: TokenRules, find: TokenFinder
) -> DelegationTokenRecord | ApiError:
    """Return the token that a change is about, or why there is none to change."""
    secret = _usable(image, asked.caller, rules)
    if isinstance(secret, ApiError):
        return secret
    return find(image, asked.hmac) or ApiError(ErrorCode.delegation_token_not_found)


def _may_change(token: DelegationTokenRecord, caller: KafkaPrincipal) -> bool:
    # parsed as Kafka parses them: the type ends at the first colon
    return caller in {*map(KafkaPrincipal.parse, (token.owner, *token.renewers))}


def _unchanged(error: ApiError) -> ControlResult[TokenChangeResult]:
    return ControlResult((), (TokenChangeResult(error=error),))


def _ending(token: DelegationTokenRecord, expiration_ms: int) -> ControlResult[TokenChangeResult]:
    expiration_ms = min(token.max_timestamp_ms, expiration_ms)
    changed = replace(token, expiration_timestamp_ms=expiration_ms)
    return ControlResult((changed,), (TokenChangeResult(expiration_ms),))


def _shorter(limit_ms: int, asked_ms: int) -> int:
    return min(limit_ms, asked_ms) if asked_ms > 0 else limit_ms


def _later(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, _INT64_MAX)


def _fits(token: DelegationTokenRecord) -> bool:
    try:
        return len(encode_record(token)) <= MAX_TOKEN_SIZE_BYTES
    except RecordError:
        return False
