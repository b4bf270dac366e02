"""Delegation tokens created, renewed, expired, described and swept: pure functions of an image.

After Kafka's `DelegationTokenControlManager`: its codes, the order of its checks, its times. It differs in
one thing: a renewal time that would exceed an int64 is clamped to it, as in a creation; Kafka's sum turns
negative and expires the token. Answers have no text, since the protocol has no field for one.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.metadata.control.results import ApiError, ControlResult
from kustos.metadata.control.token_secrets import TokenSecret
from kustos.metadata.errors import RecordError
from kustos.metadata.features import DELEGATION_TOKEN_LEVEL
from kustos.metadata.image import MetadataImage
from kustos.metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord, encode_record
from kustos.runtime import Entropy
from kustos.settings import INT64_MAX, Setting, whole_number
from kustos.wire import ErrorCode, new_uuid, uuid_text

MAX_RECORDS_PER_SWEEP: Final = 1000
"""Kafka's limit of removals in one pass; after a full pass the next one follows at once."""

MAX_TOKEN_SIZE_BYTES: Final = 8 * 1024 * 1024
"""Kafka's log accepts no larger batch (`KafkaRaftClient.MAX_BATCH_SIZE_BYTES`); a token may have many
renewers."""

TokenFinder = Callable[[MetadataImage, bytes], DelegationTokenRecord | None]
"""(image, HMAC) → the token; see `TokenIndex.find`."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Token settings, by Kafka's keys `delegation.token.*`.

    Without a secret tokens are disabled. Raise ValueError for a time below 1 ms.
    """

    secret: TokenSecret | None = None
    max_lifetime_ms: int = Setting(
        "delegation.token.max.lifetime.ms",
        whole_number(1, INT64_MAX, "milliseconds"),
        7 * 24 * 60 * 60 * 1000,
        "Delegation tokens",
        "The longest lifetime of a token, however often it is renewed.",
    ).field()
    expiry_time_ms: int = Setting(
        "delegation.token.expiry.time.ms",
        whole_number(1, INT64_MAX, "milliseconds"),
        24 * 60 * 60 * 1000,
        "Delegation tokens",
        "How long a token lasts until it must be renewed.",
    ).field()
    expiry_check_interval_ms: int = Setting(
        "delegation.token.expiry.check.interval.ms",
        whole_number(1, INT64_MAX, "milliseconds"),
        60 * 60 * 1000,
        "Delegation tokens",
        "How often kustos removes expired tokens. It refuses them as soon as they expire.",
    ).field()

    def __post_init__(self) -> None:
        for name in ("max_lifetime_ms", "expiry_time_ms", "expiry_check_interval_ms"):
            if getattr(self, name) < 1:
                raise ValueError(f"`delegation.token.{name.replace('_', '.')}` is below 1, use 1 or more")


@dataclass(frozen=True, slots=True)
class TokenCreation:
    """Create a token that acts as `owner`; the requester is already authorized.

    `max_lifetime_ms` 0 or less: the maximum.
    """

    requester: KafkaPrincipal
    owner: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...] = ()
    max_lifetime_ms: int = -1


@dataclass(frozen=True, slots=True)
class TokenRenewal:
    """Renew a token, by `period_ms` if positive."""

    caller: KafkaPrincipal
    hmac: bytes = field(repr=False)
    period_ms: int = -1


@dataclass(frozen=True, slots=True)
class TokenExpiry:
    """Expire a token in `period_ms`; delete it at once if negative."""

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
    """The new expiry of the token, or the error (with 0, as in Kafka); `token_id` if one was changed."""

    expiry_timestamp_ms: int = 0
    error: ApiError | None = None
    token_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class TokenDescription:
    """A token as shown to its owner."""

    token: DelegationTokenRecord
    hmac: bytes = field(repr=False)


def create_token(
    image: MetadataImage, creation: TokenCreation, rules: TokenRules, now_ms: int, entropy: Entropy
) -> ControlResult[TokenCreateResult]:
    """Return the record of a new token, and the token with its HMAC."""

    def refused(error: ApiError) -> ControlResult[TokenCreateResult]:
        return ControlResult((), (TokenCreateResult(creation.owner, creation.requester, error=error),))

    secret = _usable(image, creation.requester, rules)
    if isinstance(secret, ApiError):
        return refused(secret)
    if any(renewer.principal_type != KafkaPrincipal.USER_TYPE for renewer in creation.renewers):
        return refused(ApiError(ErrorCode.invalid_principal_type))
    max_timestamp_ms = _later(now_ms, _shorter(rules.max_lifetime_ms, creation.max_lifetime_ms))
    token = DelegationTokenRecord(
        owner=str(creation.owner),
        requester=str(creation.requester),
        renewers=tuple(map(str, creation.renewers)),
        issue_timestamp_ms=now_ms,
        max_timestamp_ms=max_timestamp_ms,
        expiration_timestamp_ms=min(max_timestamp_ms, _later(now_ms, rules.expiry_time_ms)),
        token_id=uuid_text(new_uuid(entropy)),
    )
    if not _fits(token):
        return refused(ApiError(ErrorCode.unknown_server_error))
    result = TokenCreateResult(creation.owner, creation.requester, token, secret.hmac(token.token_id))
    return ControlResult((token,), (result,))


def renew_token(
    image: MetadataImage, renewal: TokenRenewal, rules: TokenRules, find: TokenFinder, now_ms: int
) -> ControlResult[TokenChangeResult]:
    """Return the record of a renewed token; renewal may also shorten its life."""
    token = _named(image, renewal, rules, find)
    if isinstance(token, ApiError):
        return _unchanged(token)
    if is_expired(token, now_ms):
        return _unchanged(ApiError(ErrorCode.delegation_token_expired))
    if not _may_change(token, renewal.caller):
        return _unchanged(ApiError(ErrorCode.delegation_token_owner_mismatch))
    return _ending(token, _later(now_ms, _shorter(rules.expiry_time_ms, renewal.period_ms)))


def expire_token(
    image: MetadataImage, expiry: TokenExpiry, rules: TokenRules, find: TokenFinder, now_ms: int
) -> ControlResult[TokenChangeResult]:
    """Return the record of an expiring token; deletion at once also works on an expired one."""
    token = _named(image, expiry, rules, find)
    if isinstance(token, ApiError):
        return _unchanged(token)
    if not _may_change(token, expiry.caller):
        return _unchanged(ApiError(ErrorCode.delegation_token_owner_mismatch))
    if expiry.period_ms < 0:
        return ControlResult(
            (RemoveDelegationTokenRecord(token.token_id),),
            (TokenChangeResult(now_ms, token_id=token.token_id),),
        )
    if is_expired(token, now_ms):
        return _unchanged(ApiError(ErrorCode.delegation_token_expired))
    return _ending(token, _later(now_ms, expiry.period_ms))


def sweep_tokens(image: MetadataImage, now_ms: int) -> ControlResult[bool]:
    """Return the removals of expired tokens, and whether more may remain."""
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
    """Return the tokens that involve one of these principals, or all; expired ones until they are swept.

    The caller decides who may see each token, see `concerns`.
    """
    return tuple(
        TokenDescription(token, secret.hmac(token.token_id))
        for token in image.delegation_tokens.values()
        if owners is None or concerns(token, owners)
    )


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Return whether the token has expired; in its last millisecond it has not."""
    return min(token.max_timestamp_ms, token.expiration_timestamp_ms) < now_ms


def concerns(token: DelegationTokenRecord, principals: Iterable[KafkaPrincipal]) -> bool:
    """Return whether one of these is owner, requester or renewer, who may see the token without ACLs."""
    known = {*map(KafkaPrincipal.parse, (token.owner, token.requester, *token.renewers))}
    return not known.isdisjoint(principals)


def _usable(image: MetadataImage, caller: KafkaPrincipal, rules: TokenRules) -> TokenSecret | ApiError:
    """Return the secret, or why token requests are refused."""
    if caller.token_authenticated:
        # a holder of a stolen token must not be able to renew it
        return ApiError(ErrorCode.delegation_token_request_not_allowed)
    if rules.secret is None:
        return ApiError(ErrorCode.delegation_token_auth_disabled)
    if image.metadata_version < DELEGATION_TOKEN_LEVEL:
        return ApiError(ErrorCode.unsupported_version)
    return rules.secret


def _named(
    image: MetadataImage, change: TokenRenewal | TokenExpiry, rules: TokenRules, find: TokenFinder
) -> DelegationTokenRecord | ApiError:
    """Return the token to change, or why it cannot be changed."""
    secret = _usable(image, change.caller, rules)
    if isinstance(secret, ApiError):
        return secret
    return find(image, change.hmac) or ApiError(ErrorCode.delegation_token_not_found)


def _may_change(token: DelegationTokenRecord, caller: KafkaPrincipal) -> bool:
    # parsed as Kafka parses them: the type ends at the first colon
    return caller in {*map(KafkaPrincipal.parse, (token.owner, *token.renewers))}


def _unchanged(error: ApiError) -> ControlResult[TokenChangeResult]:
    return ControlResult((), (TokenChangeResult(error=error),))


def _ending(token: DelegationTokenRecord, expiration_ms: int) -> ControlResult[TokenChangeResult]:
    expiration_ms = min(token.max_timestamp_ms, expiration_ms)
    changed = replace(token, expiration_timestamp_ms=expiration_ms)
    return ControlResult((changed,), (TokenChangeResult(expiration_ms, token_id=token.token_id),))


def _shorter(limit_ms: int, requested_ms: int) -> int:
    return min(limit_ms, requested_ms) if requested_ms > 0 else limit_ms


def _later(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, INT64_MAX)


def _fits(token: DelegationTokenRecord) -> bool:
    try:
        return len(encode_record(token)) <= MAX_TOKEN_SIZE_BYTES
    except RecordError:
        return False
