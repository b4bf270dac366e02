"""What the store can be asked to change, and how a request is refused whole."""

from dataclasses import dataclass, replace
from typing import Any

from kio.schema.errors import ErrorCode

from kustos.acl import AclBinding, AclBindingFilter
from kustos.metadata.control import (
    AclCreateResult,
    AclDeleteResult,
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


@dataclass(frozen=True, slots=True)
class CreateAcls:
    """Make these ACLs."""

    bindings: tuple[AclBinding, ...]


@dataclass(frozen=True, slots=True)
class DeleteAcls:
    """Take away what these filters match."""

    filters: tuple[AclBindingFilter, ...]


@dataclass(frozen=True, slots=True)
class AlterScram:
    """Delete and set SCRAM credentials."""

    deletions: tuple[ScramDeletion, ...] = ()
    upsertions: tuple[ScramUpsertion, ...] = ()


@dataclass(frozen=True, slots=True)
class CopySecrets:
    """Keep credentials and tokens as another cluster kept them."""

    copies: tuple[Copy, ...]


@dataclass(frozen=True, slots=True)
class SweepTokens:
    """Take expired delegation tokens away; the one result says whether there may be more."""


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
    """Return the results of a request whose records begin there in the log: those of ACLs tell it."""
    return tuple(_written(result, change_offset) for result in results)


def _written(result: Any, change_offset: int) -> Any:
    match result:
        case AclCreateResult(error=None):
            return AclCreateResult(change_offset=change_offset)
        case AclDeleteResult(error=None):
            return AclDeleteResult(result.deleted, change_offset=change_offset)
        case _:
            return result


def refused(results: tuple[Any, ...], reason: BatchTooLargeError) -> tuple[Any, ...]:
    """Return the results of a request of which nothing was done: all its items fail alike.

    With UNKNOWN_SERVER_ERROR and no text, as Kafka 4.3 answers a request too large for its log.

    A sweep never gets here: its removals are few and short, so the error is raised again.
    """
    error = ApiError(ErrorCode.unknown_server_error)
    return tuple(_refused(result, error, reason) for result in results)


def _refused(result: Any, error: ApiError, reason: BatchTooLargeError) -> Any:
    match result:
        case AclDeleteResult():
            return AclDeleteResult(error=error)
        case TokenCreateResult(owner, requester):
            return TokenCreateResult(owner, requester, error=error)
        case TokenChangeResult():
            return TokenChangeResult(error=error)
        case bool():
            raise reason
        case _:
            return replace(result, error=error)
