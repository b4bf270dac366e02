"""Copies credentials and delegation tokens, with their secrets, in the form that another cluster stores.

No Kafka API transfers stored SCRAM keys; like Kafka's own migration from ZooKeeper, this module writes the
records. It refuses copies that Kafka's requests would refuse.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from kustos.metadata.control.results import (
    EXCESSIVE_BATCH,
    MAX_RECORDS_PER_USER_OPERATION,
    ApiError,
    ControlResult,
)
from kustos.metadata.errors import RecordError
from kustos.metadata.features import DELEGATION_TOKEN_LEVEL, SCRAM_LEVEL
from kustos.metadata.image import MetadataImage, scram_record
from kustos.metadata.records import DelegationTokenRecord, MetadataRecord
from kustos.metadata.records.fields import string_field
from kustos.metadata.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential, ScramMechanism
from kustos.wire import ErrorCode


@dataclass(frozen=True, slots=True)
class ScramCopy:
    """Set this credential, replacing an existing one; `mechanism` is the stored code."""

    user: str
    mechanism: int
    credential: ScramCredential = field(repr=False)


Copy = ScramCopy | DelegationTokenRecord


@dataclass(frozen=True, slots=True)
class CopyResult:
    """The result of one copy: stored, or the error."""

    error: ApiError | None = None


def copy_secrets(image: MetadataImage, copies: Sequence[Copy]) -> ControlResult[CopyResult]:
    """Return the records of the valid copies, and one result per copy, in order.

    More than 10,000 fail together, as in a Kafka request.
    """
    if len(copies) > MAX_RECORDS_PER_USER_OPERATION:
        refused = CopyResult(ApiError(ErrorCode.policy_violation, EXCESSIVE_BATCH))
        return ControlResult((), (refused,) * len(copies))
    errors = [copy_error(copy, image.metadata_version) for copy in copies]
    records = [_record(copy) for copy, error in zip(copies, errors, strict=True) if error is None]
    return ControlResult(tuple(records), tuple(map(CopyResult, errors)))


def copy_error(copy: Copy, metadata_version: int) -> ApiError | None:
    """Return the error if this cannot be stored, else None."""
    if isinstance(copy, ScramCopy):
        return _scram_error(copy, metadata_version)
    if metadata_version < DELEGATION_TOKEN_LEVEL:
        return ApiError(
            ErrorCode.unsupported_version, "The current metadata.version does not support delegation tokens"
        )
    return None


def _scram_error(copy: ScramCopy, metadata_version: int) -> ApiError | None:
    if metadata_version < SCRAM_LEVEL:
        return ApiError(ErrorCode.unsupported_version, "The current metadata.version does not support SCRAM")
    if not copy.user:
        return ApiError(ErrorCode.unacceptable_credential, "Username must not be empty")
    mechanism = ScramMechanism.from_code(copy.mechanism)
    if mechanism is None:
        return ApiError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    reason = _unfit_reason(copy, mechanism)
    return ApiError(ErrorCode.unacceptable_credential, reason) if reason is not None else None


def _unfit_reason(copy: ScramCopy, mechanism: ScramMechanism) -> str | None:
    credential = copy.credential
    if not MIN_ITERATIONS <= credential.iterations <= MAX_ITERATIONS:
        return f"Too {'few' if credential.iterations < MIN_ITERATIONS else 'many'} iterations"
    key_size = hashlib.new(mechanism.hash_name).digest_size
    if not credential.salt or {len(credential.stored_key), len(credential.server_key)} != {key_size}:
        return f"The salt or a key has not the length of {mechanism.mechanism_name}"
    try:
        string_field(copy.user)
    except RecordError as unfit:
        return str(unfit)
    return None


def _record(copy: Copy) -> MetadataRecord:
    return scram_record(copy.user, copy.mechanism, copy.credential) if isinstance(copy, ScramCopy) else copy
