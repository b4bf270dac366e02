"""Delegation tokens on an image: who may do what to them, their times, and that their secrets stay secret."""

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest

from kustos.acl import KafkaPrincipal
from kustos.metadata.control import (
    MAX_RECORDS_PER_SWEEP,
    ApiError,
    ControlResult,
    TokenChangeResult,
    TokenCreateResult,
    TokenCreation,
    TokenDescription,
    TokenExpiry,
    TokenRenewal,
    TokenRules,
    concerns,
    create_token,
    describe_tokens,
    expire_token,
    is_expired,
    renew_token,
    sweep_tokens,
)
from kustos.metadata.control.token_secrets import (
    CREDENTIALS_KEPT_MAX,
    TokenCredentials,
    TokenIndex,
    TokenSecret,
)
from kustos.metadata.features import DEFAULT_LEVEL, DELEGATION_TOKEN_LEVEL
from kustos.metadata.image import ImageBuilder, MetadataImage, image_of
from kustos.metadata.records import DelegationTokenRecord, FeatureLevelRecord, RemoveDelegationTokenRecord
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.runtime import SystemEntropy
from kustos.wire import ErrorCode
from tests.unit.metadata.token_worlds import TOKEN, TOKEN_ID, renewed

KEY = "the-s3cret"
SECRET = TokenSecret(KEY.encode())
RULES = TokenRules(SECRET, max_lifetime_ms=1000, expiry_time_ms=100)
LEVEL = FeatureLevelRecord("metadata.version", DEFAULT_LEVEL)
IMAGE = image_of([LEVEL, TOKEN])
ALICE, BOB, CAROL, ZOE = (KafkaPrincipal("User", name) for name in "abcz")
HMAC = hmac.digest(KEY.encode(), TOKEN_ID.encode(), hashlib.sha512)
INT64_MAX = 2**63 - 1
NOT_FOUND = ApiError(ErrorCode.delegation_token_not_found)
EXPIRED = ApiError(ErrorCode.delegation_token_expired)
MISMATCH = ApiError(ErrorCode.delegation_token_owner_mismatch)


def found_in(image: MetadataImage) -> TokenIndex:
    index = TokenIndex(SECRET, SystemEntropy())
    index.load(image)
    return index


def renew(
    caller: KafkaPrincipal, now_ms: int = 50, period_ms: int = -1, image: MetadataImage = IMAGE,
    rules: TokenRules = RULES, presented: bytes = HMAC,
) -> ControlResult[TokenChangeResult]:  # fmt: skip
    asked = TokenRenewal(caller, presented, period_ms)
    return renew_token(image, asked, rules, found_in(image).find, now_ms)


def expire(
    caller: KafkaPrincipal, now_ms: int = 50, period_ms: int = -1, image: MetadataImage = IMAGE,
    rules: TokenRules = RULES, presented: bytes = HMAC,
) -> ControlResult[TokenChangeResult]:  # fmt: skip
    asked = TokenExpiry(caller, presented, period_ms)
    return expire_token(image, asked, rules, found_in(image).find, now_ms)


def create(
    asked: TokenCreation, now_ms: int = 50, image: MetadataImage = IMAGE, rules: TokenRules = RULES
) -> ControlResult[TokenCreateResult]:
    return create_token(image, asked, rules, now_ms, SystemEntropy())


def refused(error: ApiError) -> ControlResult[TokenChangeResult]:
    return ControlResult((), (TokenChangeResult(0, error),))


@pytest.mark.behaviour("B202")
def test_lifetimes_have_kafkas_defaults_and_lower_bound() -> None:
    rules: Any = TokenRules()
    assert rules.max_lifetime_ms == 7 * 24 * 3600 * 1000
    assert rules.expiry_time_ms == 24 * 3600 * 1000
    assert rules.expiry_check_interval_ms == 3600 * 1000
    for name, key in {
        "max_lifetime_ms": "delegation.token.max.lifetime.ms",
        "expiry_time_ms": "delegation.token.expiry.time.ms",
        "expiry_check_interval_ms": "delegation.token.expiry.check.interval.ms",
    }.items():
        with pytest.raises(ValueError, match=f"`{key}` is below 1"):
            replace(rules, **{name: 0})
        assert getattr(replace(rules, **{name: 1}), name) == 1


@pytest.mark.behaviour("B199")
def test_a_new_token_names_owner_requester_and_renewers() -> None:
    outcome = create(TokenCreation(ALICE, BOB, (CAROL, ZOE)), now_ms=5)
    (token,), (made,) = outcome.records, outcome.results
    assert isinstance(token, DelegationTokenRecord)
    assert token == DelegationTokenRecord(
        "User:b", "User:a", ("User:c", "User:z"), 5, 1005, 105, token.token_id
    )
    assert len(token.token_id) == 22
    assert made == TokenCreateResult(
        BOB, ALICE, token, hmac.digest(KEY.encode(), token.token_id.encode(), "sha512")
    )
    assert create(TokenCreation(ALICE, BOB)).records != create(TokenCreation(ALICE, BOB)).records


@pytest.mark.behaviour("B205", "B207")
@pytest.mark.parametrize(
    ("now_ms", "asked_ms", "rules", "max_ms", "expiration_ms"),
    [
        (50, -1, RULES, 1050, 150),
        (50, 0, RULES, 1050, 150),
        (50, -(2**63), RULES, 1050, 150),
        (50, 1, RULES, 51, 51),
        (50, 1001, RULES, 1050, 150),
        (50, INT64_MAX, RULES, 1050, 150),
        (50, -1, TokenRules(SECRET, 10, 100), 60, 60),
        (50, -1, TokenRules(SECRET, INT64_MAX, INT64_MAX), INT64_MAX, INT64_MAX),
        (INT64_MAX, 1, RULES, INT64_MAX, INT64_MAX),
    ],
)  # fmt: skip
def test_no_life_is_longer_than_asked_or_allowed_nor_than_numbers_go(
    now_ms: int, asked_ms: int, rules: TokenRules, max_ms: int, expiration_ms: int
) -> None:
    (token,) = create(TokenCreation(ALICE, ALICE, (), asked_ms), now_ms, rules=rules).records
    assert isinstance(token, DelegationTokenRecord)
    assert (token.max_timestamp_ms, token.expiration_timestamp_ms) == (max_ms, expiration_ms)


@pytest.mark.behaviour("B199", "B207")
@pytest.mark.parametrize(
    ("now_ms", "period_ms", "expiration_ms"),
    [(50, -1, 150), (50, 0, 150), (50, 7, 57), (50, 500, 150), (50, INT64_MAX, 150), (105, -1, 205)],
)
@pytest.mark.parametrize("caller", [BOB, CAROL])
def test_owner_and_renewers_renew(
    caller: KafkaPrincipal, now_ms: int, period_ms: int, expiration_ms: int
) -> None:
    assert renew(caller, now_ms, period_ms) == ControlResult(
        (renewed(TOKEN, expiration_ms),), (TokenChangeResult(expiration_ms),)
    )


@pytest.mark.behaviour("B207")
def test_nothing_takes_a_token_beyond_its_longest_life() -> None:
    nearly_over = image_of([LEVEL, renewed(TOKEN, 1000)])
    for outcome in (renew(BOB, 990, image=nearly_over), expire(BOB, 990, INT64_MAX, image=nearly_over)):
        assert outcome == ControlResult((renewed(TOKEN, 1005),), (TokenChangeResult(1005),))


@pytest.mark.behaviour("B199", "B206")
def test_expiry_ends_at_once_or_in_time_without_a_cap() -> None:
    gone = ControlResult((RemoveDelegationTokenRecord(TOKEN_ID),), (TokenChangeResult(50),))
    assert expire(BOB, 50, -1) == expire(CAROL, 50, -(2**63)) == gone
    assert expire(BOB, 50, 0) == ControlResult((renewed(TOKEN, 50),), (TokenChangeResult(50),))
    assert expire(BOB, 50, 900) == ControlResult((renewed(TOKEN, 950),), (TokenChangeResult(950),))
    # also what has expired can still be ended for good
    assert expire(BOB, 106, -1).records == gone.records
    assert expire(BOB, 106, 0) == refused(EXPIRED)


@pytest.mark.behaviour("B199")
def test_others_change_nothing_the_requester_neither() -> None:
    for caller in (ALICE, ZOE, KafkaPrincipal("Group", "b"), KafkaPrincipal("User", "*")):
        assert renew(caller) == expire(caller) == refused(MISMATCH)
    # Kafka tells the renewer that it is late, and the stranger, too; who wants to end it, that it is not his
    assert renew(ZOE, 106) == refused(EXPIRED)
    assert expire(ZOE, 106) == refused(MISMATCH)


@pytest.mark.parametrize("presented", [b"", HMAC[:-1], HMAC + b"\0", bytes(64), TOKEN_ID.encode()])
def test_an_hmac_of_no_token_finds_none(presented: bytes) -> None:
    assert renew(BOB, presented=presented) == expire(BOB, presented=presented) == refused(NOT_FOUND)


def test_a_token_of_another_secret_is_not_found() -> None:
    other = TokenSecret(b"other")
    rules = TokenRules(other, 1000, 100)
    index = TokenIndex(other, SystemEntropy())
    index.load(IMAGE)
    assert renew_token(IMAGE, TokenRenewal(BOB, HMAC), rules, index.find, 50) == refused(NOT_FOUND)
    theirs = other.hmac(TOKEN_ID)
    assert renew_token(IMAGE, TokenRenewal(BOB, theirs), rules, index.find, 50).records


@pytest.mark.behaviour("B201")
@pytest.mark.parametrize(
    ("caller", "rules", "level", "code"),
    [
        (BOB, TokenRules(None), DEFAULT_LEVEL, ErrorCode.delegation_token_auth_disabled),
        (BOB, TokenRules(TokenSecret.of("")), DEFAULT_LEVEL, ErrorCode.delegation_token_auth_disabled),
        (BOB, TokenRules(None), 1, ErrorCode.delegation_token_auth_disabled),
        (BOB, RULES, DELEGATION_TOKEN_LEVEL - 1, ErrorCode.unsupported_version),
        (
            replace(BOB, token_authenticated=True),
            TokenRules(None),
            1,
            ErrorCode.delegation_token_request_not_allowed,
        ),
    ],
)
def test_without_secret_level_or_a_login_of_ones_own_nothing_is_done(
    caller: KafkaPrincipal, rules: TokenRules, level: int, code: ErrorCode
) -> None:
    image = image_of([FeatureLevelRecord("metadata.version", level), TOKEN])
    error = ApiError(code)
    assert renew(caller, image=image, rules=rules) == refused(error)
    assert expire(caller, image=image, rules=rules) == refused(error)
    # also before a wrong kind of renewer is noticed
    asked = TokenCreation(caller, ALICE, (KafkaPrincipal("Group", "g"),))
    assert create(asked, image=image, rules=rules) == ControlResult(
        (), (TokenCreateResult(ALICE, caller, error=error),)
    )


def test_only_users_renew_and_only_what_a_record_holds_is_made() -> None:
    wrong_kind = TokenCreation(ALICE, ALICE, (BOB, KafkaPrincipal("user", "c")))
    too_long = TokenCreation(ALICE, KafkaPrincipal("User", "n" * 32_763))
    too_many = TokenCreation(ALICE, ALICE, (KafkaPrincipal("User", "n" * 32_000),) * 263)
    for asked, code in (
        (wrong_kind, ErrorCode.invalid_principal_type),
        (too_long, ErrorCode.unknown_server_error),
        (too_many, ErrorCode.unknown_server_error),
    ):
        assert create(asked).records == ()
        assert create(asked).results[0].error == ApiError(code)
    assert create(replace(too_long, owner=KafkaPrincipal("User", "n" * 32_762))).records
    assert create(replace(too_many, renewers=too_many.renewers[:261])).records


def test_a_token_expires_after_its_last_millisecond() -> None:
    assert not is_expired(TOKEN, 105)
    assert is_expired(TOKEN, 106)
    assert is_expired(replace(TOKEN, expiration_timestamp_ms=2000), 1006)


def test_a_sweep_takes_the_expired_a_thousand_at_a_time() -> None:
    assert MAX_RECORDS_PER_SWEEP == 1000
    tokens = [replace(TOKEN, token_id=f"t{number}") for number in range(1000)]
    fresh = renewed(replace(TOKEN, token_id="fresh"), 500)
    assert sweep_tokens(image_of([*tokens, fresh]), 105) == ControlResult((), (False,))
    for count, more in ((999, False), (1000, True)):
        outcome = sweep_tokens(image_of([*tokens[:count], fresh]), 106)
        assert outcome.results == (more,)
        assert {
            record.token_id for record in outcome.records if isinstance(record, RemoveDelegationTokenRecord)
        } == {token.token_id for token in tokens[:count]}


@pytest.mark.behaviour("B199")
def test_tokens_are_described_to_those_they_concern() -> None:
    other = replace(TOKEN, owner="User:z", requester="User:z", renewers=(), token_id="other")
    image = image_of([LEVEL, TOKEN, other])
    described = {
        name: {each.token.token_id for each in describe_tokens(image, SECRET, owners)}
        for name, owners in {
            "all": None, "none": (), "owner": (BOB,), "requester": (ALICE,), "renewer": (CAROL,),
            "both": (ZOE, CAROL), "stranger": (KafkaPrincipal("Group", "b"),),
        }.items()
    }  # fmt: skip
    assert described == {
        "all": {TOKEN_ID, "other"}, "none": set(), "owner": {TOKEN_ID}, "requester": {TOKEN_ID},
        "renewer": {TOKEN_ID}, "both": {TOKEN_ID, "other"}, "stranger": set(),
    }  # fmt: skip
    assert describe_tokens(image, SECRET, (BOB,)) == (TokenDescription(TOKEN, HMAC),)
    assert concerns(replace(TOKEN, owner="a:b:c"), [KafkaPrincipal("a", "b:c")])
    assert not concerns(replace(TOKEN, owner="a:b:c"), [KafkaPrincipal("a:b", "c")])


def test_the_index_keeps_step_with_the_records() -> None:
    index = TokenIndex(SECRET, SystemEntropy())
    assert index.find(IMAGE, HMAC) is None
    builder = ImageBuilder(image_of([LEVEL]))
    index.apply(builder.replay_all([TOKEN]))
    assert index.find(builder.view(), HMAC) == TOKEN
    index.apply(builder.replay_all([renewed(TOKEN, 77)]))
    assert index.find(builder.view(), HMAC) == renewed(TOKEN, 77)
    index.apply(builder.replay_all([RemoveDelegationTokenRecord(TOKEN_ID)]))
    assert index.find(builder.view(), HMAC) is None
    assert index.find(IMAGE, HMAC) is None, "what was removed is forgotten"
    index.load(IMAGE)
    assert index.find(IMAGE, HMAC) == TOKEN
    assert index.find(image_of([]), HMAC) is None, "what is in no image is not a token"


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_a_token_logs_in_with_its_hmac_in_base64(mechanism: ScramMechanism) -> None:
    credentials = TokenCredentials(SECRET)
    made = credentials.compute(TOKEN_ID, mechanism)
    assert made == scram_credential(mechanism, SECRET.password(TOKEN_ID), made.salt, 4096)
    assert made == TokenCredentials(SECRET).compute(TOKEN_ID, mechanism)
    nobodys = credentials.known(TOKEN_ID, mechanism)
    assert (nobodys.salt, nobodys.iterations) == (made.salt, made.iterations)
    assert len(nobodys.stored_key) == len(made.stored_key) == len(nobodys.server_key)
    assert nobodys != made
    credentials.keep(TOKEN_ID, mechanism, made)
    assert credentials.known(TOKEN_ID, mechanism) is made


def test_credentials_unused_for_longest_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CREDENTIALS_KEPT_MAX == 10_000
    monkeypatch.setattr("kustos.metadata.control.token_secrets.CREDENTIALS_KEPT_MAX", 2)
    credentials, mechanism = TokenCredentials(SECRET), ScramMechanism.SCRAM_SHA_256
    one, two, three = (credentials.compute(token_id, mechanism) for token_id in ("1", "2", "3"))
    credentials.keep("1", mechanism, one)
    credentials.keep("2", mechanism, two)
    assert credentials.known("1", mechanism) is one
    credentials.keep("3", mechanism, three)
    assert credentials.known("1", mechanism) is one
    assert credentials.known("2", mechanism) is not two


@pytest.mark.behaviour("B070")
def test_no_text_form_shows_the_secret_or_an_hmac() -> None:
    made = create(TokenCreation(ALICE, BOB)).results[0]
    shown = (
        SECRET, RULES, made, create(TokenCreation(ALICE, BOB)), IMAGE,
        TokenRenewal(BOB, HMAC), TokenExpiry(BOB, HMAC),
        describe_tokens(IMAGE, SECRET, None), found_in(IMAGE), TokenCredentials(SECRET),
        TokenCredentials(SECRET).compute(TOKEN_ID, ScramMechanism.SCRAM_SHA_512),
        TokenCredentials(SECRET).known(TOKEN_ID, ScramMechanism.SCRAM_SHA_512),
    )  # fmt: skip
    for value in shown:
        for secret in (KEY.encode(), HMAC, made.hmac):
            assert repr(secret)[2:-1] not in repr(value)
        assert KEY not in repr(value)
        assert "hmac=" not in repr(value)


def test_a_secret_in_other_letters_is_its_utf_8() -> None:
    secret = TokenSecret.of("gehëim")
    assert secret is not None
    assert secret.hmac("ü") == hmac.digest("gehëim".encode(), "ü".encode(), "sha512")
    assert TokenSecret.of(None) is TokenSecret.of("") is None
    with pytest.raises(ValueError, match=r"^the secret is not Unicode text$") as raised:
        TokenSecret.of("s3cret\ud800")
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
