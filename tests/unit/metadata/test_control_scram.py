"""SCRAM credentials altered and described on an image: Kafka's checks, texts and order of results."""

import hashlib
import hmac

import pytest

from kustos.metadata.control import (
    MAX_RECORDS_PER_USER_OPERATION,
    ApiError,
    ScramAlterResult,
    ScramCredentialInfo,
    ScramDeletion,
    ScramDescribeResult,
    ScramUpsertion,
    alter_scram,
    describe_scram,
)
from kustos.metadata.features import DEFAULT_LEVEL, SCRAM_LEVEL
from kustos.metadata.image import ImageBuilder, MetadataImage, image_of
from kustos.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kustos.metadata.scram import ScramMechanism, scram_credential
from kustos.wire import ErrorCode

SHA_256, SHA_512 = 1, 2
SALT, SALTED = b"the-salt", b"the-salted-password"


def upsertion(
    user: str = "new", mechanism: int = SHA_256, iterations: int = 4096, salted: bytes = SALTED
) -> ScramUpsertion:
    return ScramUpsertion(user, mechanism, iterations, SALT, salted)


def stored(user: str, mechanism: int, iterations: int = 4096) -> MetadataRecord:
    return UserScramCredentialRecord(user, mechanism, SALT, b"stored", b"server", iterations)


def image_at(level: int) -> MetadataImage:
    return image_of(
        [
            FeatureLevelRecord("metadata.version", level),
            stored("both", SHA_512, 8192),
            stored("both", SHA_256),
            stored("one", SHA_256, 5000),
        ]
    )


IMAGE = image_at(DEFAULT_LEVEL)
TWICE = ApiError(
    ErrorCode.duplicate_resource, "A user credential cannot be altered twice in the same request"
)
NO_SUCH = ApiError(ErrorCode.resource_not_found, "Attempt to delete a user credential that does not exist")
UNKNOWN_MECHANISM = ApiError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
TOO_OLD = ApiError(ErrorCode.unsupported_version, "The current metadata.version does not support SCRAM")


def unacceptable(message: str) -> ApiError:
    return ApiError(ErrorCode.unacceptable_credential, message)


REFUSED = [
    (upsertion(""), unacceptable("Username must not be empty")),
    (ScramDeletion("", SHA_256), unacceptable("Username must not be empty")),
    (ScramDeletion("", 9), unacceptable("Username must not be empty")),
    *((upsertion(mechanism=code), UNKNOWN_MECHANISM) for code in (-128, -1, 0, 3, 127)),
    *((ScramDeletion("one", code), UNKNOWN_MECHANISM) for code in (-1, 0, 3)),
    (upsertion(mechanism=0, iterations=1), UNKNOWN_MECHANISM),
    (upsertion(iterations=4095), unacceptable("Too few iterations")),
    (upsertion(iterations=0), unacceptable("Too few iterations")),
    (upsertion(iterations=-1), unacceptable("Too few iterations")),
    (upsertion(iterations=16385), unacceptable("Too many iterations")),
    (ScramDeletion("one", SHA_512), NO_SUCH),
    (ScramDeletion("nobody", SHA_256), NO_SUCH),
    (ScramDeletion("One", SHA_256), NO_SUCH),
    (upsertion(salted=b""), ApiError(ErrorCode.unknown_server_error)),
    (
        upsertion("é" * 16_384),
        unacceptable("a text has 32768 bytes of UTF-8, a record holds at most 32767"),
    ),
]


def alter(
    image: MetadataImage, *asked: ScramDeletion | ScramUpsertion
) -> tuple[list[MetadataRecord], list[ScramAlterResult]]:
    outcome = alter_scram(
        image,
        [each for each in asked if isinstance(each, ScramDeletion)],
        [each for each in asked if isinstance(each, ScramUpsertion)],
    )
    return list(outcome.records), list(outcome.results)


@pytest.mark.behaviour("B187", "B188", "B189", "B190")
@pytest.mark.parametrize(("asked", "error"), REFUSED)
def test_an_invalid_alteration_is_refused_alone(
    asked: ScramDeletion | ScramUpsertion, error: ApiError
) -> None:
    good = upsertion("good")
    records, results = alter(IMAGE, asked, good)
    assert results == [ScramAlterResult("good"), ScramAlterResult(asked.user, error)]
    assert [record.name for record in records if isinstance(record, UserScramCredentialRecord)] == ["good"]
    assert len(records) == 1


@pytest.mark.behaviour("B185")
def test_nothing_asked_gives_nothing() -> None:
    assert alter(IMAGE) == ([], [])


@pytest.mark.behaviour("B192")
@pytest.mark.parametrize("asked", [upsertion(), upsertion(""), ScramDeletion("one", SHA_256)])
def test_a_version_without_scram_refuses_before_all_else(asked: ScramDeletion | ScramUpsertion) -> None:
    assert alter(image_at(SCRAM_LEVEL - 1), asked) == ([], [ScramAlterResult(asked.user, TOO_OLD)])
    assert alter(image_at(SCRAM_LEVEL), asked)[1][0].error != TOO_OLD


@pytest.mark.behaviour("B186")
@pytest.mark.parametrize(
    "asked",
    [
        (ScramDeletion("both", SHA_256), ScramDeletion("both", SHA_256)),
        (ScramDeletion("both", SHA_256), ScramDeletion("both", SHA_512)),
        (ScramDeletion("both", SHA_256), upsertion("both", SHA_256)),
        (ScramDeletion("both", SHA_256), upsertion("both", SHA_512)),
        (upsertion("both", SHA_256), upsertion("both", SHA_512)),
        (upsertion("both"), upsertion("both"), upsertion("both")),
    ],
)
def test_a_user_altered_twice_fails_once_and_changes_nothing(
    asked: tuple[ScramDeletion | ScramUpsertion, ...],
) -> None:
    records, results = alter(IMAGE, *asked, ScramDeletion("one", SHA_256))
    assert results == [ScramAlterResult("one"), ScramAlterResult("both", TWICE)]
    assert records == [RemoveUserScramCredentialRecord("one", SHA_256)]


@pytest.mark.behaviour("B186")
def test_the_first_error_of_a_user_stays() -> None:
    asked = (ScramDeletion("one", SHA_512), upsertion("one"), upsertion("one"))
    assert alter(IMAGE, *asked) == ([], [ScramAlterResult("one", NO_SUCH)])
    # and keeps nobody else from being altered
    records, results = alter(IMAGE, *asked, upsertion("z"))
    assert results == [ScramAlterResult("z"), ScramAlterResult("one", NO_SUCH)]
    assert len(records) == 1


def test_results_are_deletions_then_upsertions_then_errors() -> None:
    asked = (
        ScramDeletion("gone", SHA_256),
        ScramDeletion("both", SHA_512),
        upsertion("z"),
        upsertion("bad", iterations=1),
        upsertion("one", SHA_512),
        ScramDeletion("", SHA_256),
    )
    results = alter(IMAGE, *asked)[1]
    assert [result.user for result in results] == ["both", "z", "one", "gone", "", "bad"]
    assert [result.error is None for result in results] == [True] * 3 + [False] * 3


@pytest.mark.behaviour("B191", "B194")
def test_what_was_altered_is_described() -> None:
    records, _ = alter(
        IMAGE, ScramDeletion("both", SHA_256), upsertion("one", SHA_512, 16384), upsertion("new")
    )
    builder = ImageBuilder(IMAGE)
    builder.replay_all(records)
    image = builder.build(0, 0)
    expected = (
        ScramDescribeResult("both", (ScramCredentialInfo(SHA_512, 8192),)),
        ScramDescribeResult("new", (ScramCredentialInfo(SHA_256, 4096),)),
        ScramDescribeResult("one", (ScramCredentialInfo(SHA_256, 5000), ScramCredentialInfo(SHA_512, 16384))),
    )
    assert describe_scram(image) == expected
    assert describe_scram(image, ["one", "both"]) == (expected[2], expected[0])
    assert describe_scram(image_of([])) == ()


@pytest.mark.behaviour("B196", "B197")
def test_of_users_asked_for_twice_or_unknown_only_they_fail() -> None:
    twice = "Cannot describe SCRAM credentials for the same user twice in a single request: "
    unknown = "Attempt to describe a user credential that does not exist: "
    assert describe_scram(IMAGE, ["gone", "one", "both", "one", "x", "x", "one", ""]) == (
        ScramDescribeResult("gone", error=ApiError(ErrorCode.resource_not_found, unknown + "gone")),
        ScramDescribeResult("one", error=ApiError(ErrorCode.duplicate_resource, twice + "one")),
        ScramDescribeResult("both", (ScramCredentialInfo(SHA_256, 4096), ScramCredentialInfo(SHA_512, 8192))),
        ScramDescribeResult("x", error=ApiError(ErrorCode.duplicate_resource, twice + "x")),
        ScramDescribeResult("", error=ApiError(ErrorCode.resource_not_found, unknown)),
    )


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_a_salted_password_becomes_the_keys_of_the_password(mechanism: ScramMechanism) -> None:
    password, salt, iterations = "pässword", b"\x00salt", 4096
    name = mechanism.hash_name
    # RFC 5802 section 3: Hi, written out
    block = hmac.digest(password.encode(), salt + b"\x00\x00\x00\x01", name)
    total = int.from_bytes(block)
    for _ in range(iterations - 1):
        block = hmac.digest(password.encode(), block, name)
        total ^= int.from_bytes(block)
    salted = total.to_bytes(len(block))
    (record,), _ = alter(IMAGE, ScramUpsertion("u", mechanism, iterations, salt, salted))
    stored_key = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    server_key = hmac.digest(salted, b"Server Key", name)
    assert record == UserScramCredentialRecord("u", mechanism, salt, stored_key, server_key, iterations)
    builder = ImageBuilder(IMAGE)
    builder.replay(record)
    made = builder.build(0, 0).scram_credentials["u", mechanism]
    assert made == scram_credential(mechanism, password, salt, iterations)


@pytest.mark.parametrize("salt", [b"", b"\x00", bytes(100_000)])
def test_lengths_of_salts_are_free(salt: bytes) -> None:
    _, results = alter(IMAGE, ScramUpsertion("u", SHA_256, 4096, salt, b"\x00"))
    assert results == [ScramAlterResult("u")]


@pytest.mark.behaviour("B061")
def test_no_text_form_shows_a_secret() -> None:
    outcome = alter_scram(IMAGE, [], [upsertion("u")])
    builder = ImageBuilder(IMAGE)
    changes = builder.replay_all(outcome.records)
    image = builder.build(0, 0)
    credential = image.scram_credentials["u", SHA_256]
    secrets = (SALT, SALTED, credential.stored_key, credential.server_key, b"stored", b"server")
    for shown in (upsertion("u"), outcome, outcome.records, changes, image, credential):
        assert not [secret for secret in secrets if repr(secret)[2:-1] in repr(shown)], type(shown)


def test_one_request_alters_10000_users_and_no_more() -> None:
    assert MAX_RECORDS_PER_USER_OPERATION == 10_000
    most = [upsertion(f"u{number}") for number in range(10_000)]
    records, results = alter(IMAGE, *most, upsertion(""))
    assert len(records) == 10_000
    assert [result.error is None for result in results] == [True] * 10_000 + [False]
    records, results = alter(IMAGE, ScramDeletion("one", SHA_256), *most, upsertion(""))
    refused = ApiError(ErrorCode.policy_violation, "Unable to perform excessively large batch operation.")
    assert records == []
    assert {result.error for result in results} == {refused}
    assert [result.user for result in results] == ["one", *(each.user for each in most), ""]
