"""What else crosses the interface of an authorizer (KIP-504): servers, endpoints, results of changes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from kustos.acl import AclBinding
from kustos.authorizer.spi import AuthorizerError

if TYPE_CHECKING:
    from kio.schema.errors import ErrorCode


def error_codes() -> "type[ErrorCode]":
    """Return Kafka's error codes, loaded with the first error: kio takes longer than this whole room."""
    from kio.schema.errors import ErrorCode

    return ErrorCode


class KafkaApiError(AuthorizerError):
    """An error that clients are told by its code: what `ApiException` is in Kafka.

    `message` None: the client shows its own words for the code. As in Kafka UNKNOWN_SERVER_ERROR has none,
    so that what nobody foresaw is told to nobody. Raises ValueError for NONE.
    """

    def __init__(self, code: "ErrorCode", message: str | None = None) -> None:
        codes = error_codes()
        if code is codes.none:
            raise ValueError("`none` is no error, name the code that clients shall see")
        super().__init__(message or code.name)
        self.code: Final = code
        self.message: Final = None if code is codes.unknown_server_error else message

    @classmethod
    def of(cls, error: BaseException) -> "KafkaApiError":
        """Return what clients are told of any error: itself, or UNKNOWN_SERVER_ERROR."""
        return error if isinstance(error, KafkaApiError) else cls(error_codes().unknown_server_error)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener as clients are told of it."""

    listener_name: str
    security_protocol: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ClusterResource:
    """The cluster; its id is None where it is not known."""

    cluster_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizerServerInfo:
    """The server that starts an authorizer."""

    cluster_resource: ClusterResource
    broker_id: int
    endpoints: tuple[Endpoint, ...]
    inter_broker_endpoint: Endpoint
    """One of the endpoints; the first where brokers do not talk to each other by any."""
    early_start_listeners: frozenset[str] = frozenset()
    """Listeners that must not wait for the ACLs, since the ACLs come by them (KIP-801)."""


@dataclass(frozen=True, slots=True)
class AclCreateResult:
    """How one creation went: without `exception` the ACL is in force."""

    exception: KafkaApiError | None = None
    change_offset: int | None = field(default=None, compare=False)
    """Where the records of the whole request begin in the metadata log; None: it wrote none, or elsewhere."""


SUCCESS: Final = AclCreateResult()
"""The ACL is in force."""


@dataclass(frozen=True, slots=True)
class AclBindingDeleteResult:
    """How the deletion of one matching ACL went: without `exception` it is gone."""

    acl_binding: AclBinding
    exception: KafkaApiError | None = None


@dataclass(frozen=True, slots=True)
class AclDeleteResult:
    """How one filter went: what matched, each with its own result, or why nothing could be asked with it."""

    acl_binding_delete_results: tuple[AclBindingDeleteResult, ...] = ()
    exception: KafkaApiError | None = field(default=None)
    change_offset: int | None = field(default=None, compare=False)
    """As of `AclCreateResult`."""

    @classmethod
    def of(cls, deleted: Iterable[AclBinding], change_offset: int | None = None) -> Self:
        """Return the result of a filter whose matches are all gone."""
        results = tuple(AclBindingDeleteResult(binding) for binding in deleted)
        return cls(results, change_offset=change_offset)
