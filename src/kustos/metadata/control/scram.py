"""SCRAM credentials altered and described: pure functions of an image, after `ScramControlManager`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kustos.metadata.control.results import (
    EXCESSIVE_BATCH,
    MAX_RECORDS_PER_USER_OPERATION,
    ApiError,
    ControlResult,
)
from kustos.metadata.errors import RecordError
from kustos.metadata.features import SCRAM_LEVEL
from kustos.metadata.image import MetadataImage, scram_record
from kustos.metadata.records import MetadataRecord, RemoveUserScramCredentialRecord
from kustos.metadata.records.fields import string_field
from kustos.metadata.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramMechanism,
    credential_from_salted_password,
)
from kustos.wire import ErrorCode

_TWICE = "A user credential cannot be altered twice in the same request"


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """Delete a credential; `mechanism` is the code as received."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """Set a credential from a salted password; `mechanism` is the code as received."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


Alteration = ScramDeletion | ScramUpsertion


@dataclass(frozen=True, slots=True)
class ScramAlterResult:
    """The result for one user: altered, or the error."""

    user: str
    error: ApiError | None = None


@dataclass(frozen=True, slots=True)
class ScramCredentialInfo:
    """The public part of a credential."""

    mechanism: int
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramDescribeResult:
    """The result for one user: its credentials without secrets, or the error."""

    user: str
    credentials: tuple[ScramCredentialInfo, ...] = ()
    error: ApiError | None = None


def alter_scram(
    image: MetadataImage, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
) -> ControlResult[ScramAlterResult]:
    """Return the records of the valid alterations and one result per user.

    Results are in Kafka's order: deletions, then upsertions, then errors. A user named twice, with the
    same or another mechanism, fails; the others proceed.
    """
    accepted: dict[str, Alteration] = {}
    errors: dict[str, ApiError] = {}
    alterations: tuple[Alteration, ...] = (*deletions, *upsertions)
    for alteration in alterations:
        if alteration.user in errors:
            continue
        error: ApiError | None
        if accepted.pop(alteration.user, None) is not None:
            error = ApiError(ErrorCode.duplicate_resource, _TWICE)
        else:
            error = _alteration_error(image, alteration)
        if error is None:
            accepted[alteration.user] = alteration
        else:
            errors[alteration.user] = error
    if len(accepted) > MAX_RECORDS_PER_USER_OPERATION:
        refused = ApiError(ErrorCode.policy_violation, EXCESSIVE_BATCH)
        users = dict.fromkeys(alteration.user for alteration in alterations)
        return ControlResult((), tuple(ScramAlterResult(user, refused) for user in users))
    results = [
        *(ScramAlterResult(user) for user in accepted),
        *(ScramAlterResult(user, error) for user, error in errors.items()),
    ]
    return ControlResult(tuple(map(_record, accepted.values())), tuple(results))


def _alteration_error(image: MetadataImage, alteration: Alteration) -> ApiError | None:
    if image.metadata_version < SCRAM_LEVEL:
        return ApiError(ErrorCode.unsupported_version, "The current metadata.version does not support SCRAM")
    if not alteration.user:
        return _unacceptable("Username must not be empty")
    if ScramMechanism.from_code(alteration.mechanism) is None:
        return ApiError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    if isinstance(alteration, ScramUpsertion):
        return _upsertion_error(alteration)
    if (alteration.user, alteration.mechanism) not in image.scram_credentials:
        return ApiError(
            ErrorCode.resource_not_found, "Attempt to delete a user credential that does not exist"
        )
    return None


def _upsertion_error(upsertion: ScramUpsertion) -> ApiError | None:
    if upsertion.iterations < MIN_ITERATIONS:
        return _unacceptable("Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        return _unacceptable("Too many iterations")
    if not upsertion.salted_password:
        # Java refuses an empty HMAC key, which Kafka reports as unknown and without a text
        return ApiError(ErrorCode.unknown_server_error)
    try:
        string_field(upsertion.user)
    except RecordError as unfit:
        return _unacceptable(str(unfit))
    return None


def _unacceptable(message: str) -> ApiError:
    return ApiError(ErrorCode.unacceptable_credential, message)


def _record(alteration: Alteration) -> MetadataRecord:
    if isinstance(alteration, ScramDeletion):
        return RemoveUserScramCredentialRecord(alteration.user, alteration.mechanism)
    credential = credential_from_salted_password(
        ScramMechanism(alteration.mechanism),
        alteration.salted_password,
        alteration.salt,
        alteration.iterations,
    )
    return scram_record(alteration.user, alteration.mechanism, credential)


def describe_scram(image: MetadataImage, users: Sequence[str] = ()) -> tuple[ScramDescribeResult, ...]:
    """Return one result per distinct requested user; if none is requested, one per user, by name."""
    known: dict[str, list[ScramCredentialInfo]] = {}
    for (user, mechanism), credential in image.scram_credentials.items():
        known.setdefault(user, []).append(ScramCredentialInfo(mechanism, credential.iterations))
    counts: dict[str, int] = {}
    for user in users or sorted(known):
        counts[user] = counts.get(user, 0) + 1
    return tuple(_describe(user, count, known.get(user)) for user, count in counts.items())


def _describe(user: str, count: int, known: list[ScramCredentialInfo] | None) -> ScramDescribeResult:
    if count > 1:
        message = "Cannot describe SCRAM credentials for the same user twice in a single request: "
        return ScramDescribeResult(user, error=ApiError(ErrorCode.duplicate_resource, message + user))
    if known is None:
        message = "Attempt to describe a user credential that does not exist: "
        return ScramDescribeResult(user, error=ApiError(ErrorCode.resource_not_found, message + user))
    return ScramDescribeResult(user, tuple(sorted(known, key=lambda each: each.mechanism)))
