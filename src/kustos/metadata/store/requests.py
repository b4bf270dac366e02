"""The change requests of the store, and the refusal of a whole request."""

from dataclasses import dataclass, replace
from typing import Any

from kustos.acl import AclBinding, AclBindingFilter
from kustos.metadata.control import (
    AclCreated,
    AclsDeleted,
    ApiError,
    ConfigAlteration,
    Copy,
    FeatureUpdates,
    ScramDeletion,
    ScramUpsertion,
    TokenChangeResult,
    TokenCreateResult,
    TokenCreation,
    TokenExpiry,
    TokenRenewal,
)
from kustos.metadata.errors import BatchTooLargeError
from kustos.wire import ErrorCode


@dataclass(frozen=True, slots=True)
class CreateAcls:
    """Create these ACLs."""

    bindings: tuple[AclBinding, ...]


@dataclass(frozen=True, slots=True)
class DeleteAcls:
    """Delete the ACLs that these filters match."""

    filters: tuple[AclBindingFilter, ...]


@dataclass(frozen=True, slots=True)
class AlterScram:
    """Delete and set SCRAM credentials."""

    deletions: tuple[ScramDeletion, ...] = ()
    upsertions: tuple[ScramUpsertion, ...] = ()


@dataclass(frozen=True, slots=True)
class CopySecrets:
    """Store credentials and tokens as another cluster stored them."""

    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class SweepTokens:
    """Remove expired delegation tokens; the one result says whether more may remain."""


StoreRequest = (
    CreateAcls
    | DeleteAcls
    | AlterScram
    | TokenCreation
    | TokenRenewal
    | TokenExpiry
    | CopySecrets
    | SweepTokens
    | ConfigAlteration
    | FeatureUpdates
)


def written(results: tuple[Any, ...], change_offset: int) -> tuple[Any, ...]:
    """Return the results of a request, with `change_offset` set in results for ACLs."""
    return tuple(_written(result, change_offset) for result in results)


def _written(result: Any, change_offset: int) -> Any:
    match result:
        case AclCreated(error=None):
            return AclCreated(change_offset=change_offset)
        case AclsDeleted(error=None):
            return AclsDeleted(result.deleted, change_offset=change_offset)
        case _:
            return result


def refused(results: tuple[Any, ...], reason: BatchTooLargeError) -> tuple[Any, ...]:
    """Return the results of a request without effect: all its items fail alike.

    They have UNKNOWN_SERVER_ERROR and no text, like the answer of Kafka 4.3 to a request too large for its
    log.

    A sweep never gets here: its removals are few and short, so the error is raised again.
    """
    error = ApiError(ErrorCode.unknown_server_error)
    return tuple(_refused(result, error, reason) for result in results)


def _refused(result: Any, error: ApiError, reason: BatchTooLargeError) -> Any:
    match result:
        case AclsDeleted():
            return AclsDeleted(error=error)
        case TokenCreateResult(owner, requester):
            return TokenCreateResult(owner, requester, error=error)
        case TokenChangeResult():
            return TokenChangeResult(error=error)
        case bool():
            raise reason
        case _:
            return replace(result, error=error)
