"""Administration of a cluster: what an operator asks and changes, as values in and values out.

A broker of a KRaft cluster forwards changes to its controller, so any node will do; a node that says
NOT_CONTROLLER is left for the controller it names, once. Per-item errors are values, since the other
items of the request took effect; an error of the whole request is raised.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeVar

from kustos import __version__
from kustos.acl import EVERY_BINDING, AclBinding, AclBindingFilter, AclValueError
from kustos.client import acl_messages
from kustos.client.addresses import NodeAddress
from kustos.client.connection import KafkaConnection
from kustos.client.errors import (
    NOT_CONTROLLER,
    AuthenticationFailedError,
    CannotConnectError,
    ClientError,
    KafkaError,
    raise_for,
)
from kustos.client.sasl import connect
from kustos.client.settings import ClientSettings
from kustos.metadata.records import DelegationTokenRecord
from kustos.metadata.scram import ScramMechanism, salted_password
from kustos.runtime import Entropy, SystemEntropy, random_text
from kustos.wire import Message, MessageCodec
from kustos.wire.api_keys import ApiKey

_Item = TypeVar("_Item")

MAX_ITEMS: Final = 1000
"""ACLs, filters or users in one request: a controller takes 10,000 records in one batch, and a
filter may remove several."""


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """Who a cluster is; `controller_id` is -1 where none is known."""

    cluster_id: str | None
    controller_id: int
    nodes: dict[int, NodeAddress]


@dataclass(frozen=True, slots=True)
class DeletedAcls:
    """What one filter removed, or why it could not."""

    binding_filter: AclBindingFilter
    deleted: tuple[AclBinding, ...] = ()
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user's mechanisms with their iterations, or why they cannot be told."""

    name: str
    credentials: tuple[tuple[str, int], ...] = ()
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True)
class ScramUpsertion:
    """A password to be set; only its salted form leaves this process (RFC 5802)."""

    user: str
    mechanism: ScramMechanism
    password: bytes = field(repr=False)
    iterations: int = 4096


@dataclass(frozen=True, slots=True)
class ScramDeletion:
    """A credential to be removed."""

    user: str
    mechanism: ScramMechanism


class AdminClient:
    """Asks and changes one cluster over one connection at a time; use as an async context manager.

    Every method raises `CannotConnectError`, `AuthenticationFailedError`, `ConnectionClosedError` or
    `UnsupportedVersionError` where there is no answer, and `KafkaError` where it is a refusal.
    """

    def __init__(self, settings: ClientSettings, *, entropy: Entropy | None = None) -> None:
        self._settings = settings
        self._entropy = entropy or SystemEntropy()
        self._connection: KafkaConnection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()
            self._connection = None

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, controller and nodes."""
        answer = await self._ask(ApiKey.METADATA, lambda codec: codec.root.fit(topics=[]), floor=1)
        raise_for(answer.get("error_code", 0))
        nodes = {node.node_id: NodeAddress(node.host, node.port) for node in answer.brokers}
        return ClusterDescription(answer.get("cluster_id"), answer.controller_id, nodes)

    async def describe_finalized_features(self) -> dict[str, int]:
        """Return the level of each feature, as `metadata.version`; none where the node tells of none."""
        names = {"client_software_name": "kustos", "client_software_version": __version__}
        answer = await self._ask(ApiKey.API_VERSIONS, lambda codec: codec.root.fit(**names))
        raise_for(answer.error_code)
        return {each.name: each.max_version_level for each in answer.get("finalized_features", ())}

    async def describe_acls(self, binding_filter: AclBindingFilter = EVERY_BINDING) -> list[AclBinding]:
        """Return every ACL that the filter asks for, in no set order."""
        _refuse_unknown(binding_filter)
        answer = await self._ask(
            ApiKey.DESCRIBE_ACLS, lambda codec: codec.new(**acl_messages.filter_fields(binding_filter))
        )
        raise_for(answer.error_code, answer.error_message)
        return acl_messages.described_bindings(answer)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """Create ACLs and return one outcome per binding, in order; an ACL that exists is no error."""
        outcomes: list[KafkaError | None] = []
        for batch in _batches(bindings):
            answer = await self._change(ApiKey.CREATE_ACLS, _creations(batch), lambda answer: answer.results)
            outcomes += [_item_error(result) for result in answer.results]
        return outcomes

    async def delete_acls(self, filters: Sequence[AclBindingFilter]) -> list[DeletedAcls]:
        """Remove all that any filter matches and return one outcome per filter, in order."""
        for binding_filter in filters:
            _refuse_unknown(binding_filter)
        outcomes: list[DeletedAcls] = []
        for batch in _batches(filters):
            answer = await self._change(
                ApiKey.DELETE_ACLS, _deletions(batch), lambda answer: answer.filter_results
            )
            for binding_filter, result in zip(batch, answer.filter_results, strict=True):
                error = _item_error(result) or next(
                    filter(None, map(_item_error, result.matching_acls)), None
                )
                deleted = tuple(
                    acl_messages.matching_binding(acl) for acl in result.matching_acls if acl.error_code == 0
                )
                outcomes.append(DeletedAcls(binding_filter, deleted, error))
        return outcomes

    async def describe_user_scram_credentials(self, users: Sequence[str] = ()) -> list[ScramUser]:
        """Return the SCRAM users of these names, of all names if none is given, sorted by name."""

        def build(codec: MessageCodec) -> Message:
            # all users are asked for by an empty list, as Java does: at null a broker that refuses never
            # answers (its error response walks the null list; seen on 4.3.1)
            return codec.new(users=[codec.struct("UserName")(name=user) for user in users])

        answer = await self._ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, build)
        raise_for(answer.error_code, answer.error_message)
        found = [
            ScramUser(
                result.user,
                tuple(sorted((_mechanism_name(i.mechanism), i.iterations) for i in result.credential_infos)),
                _item_error(result),
            )
            for result in answer.results
        ]
        return sorted(found, key=lambda user: user.name)

    async def describe_delegation_tokens(self) -> list[DelegationTokenRecord]:
        """Return the tokens that we may see, without their HMACs; refused over PLAINTEXT."""
        answer = await self._ask(
            ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda codec: codec.new(owners=None), floor=3
        )
        raise_for(answer.error_code)
        return [_token(described) for described in answer.tokens]

    async def alter_user_scram_credentials(
        self, upsertions: Sequence[ScramUpsertion] = (), deletions: Sequence[ScramDeletion] = ()
    ) -> dict[str, KafkaError | None]:
        """Set and remove credentials; return user -> outcome.

        A cluster takes each user once in a request: two mechanisms of one user are two calls.
        """
        salts = [random_text(self._entropy).encode() for _ in upsertions]

        def build(codec: MessageCodec) -> Message:
            upsertion, deletion = (
                codec.struct("ScramCredentialUpsertion"),
                codec.struct("ScramCredentialDeletion"),
            )
            return codec.new(
                upsertions=[
                    upsertion(
                        name=item.user,
                        mechanism=int(item.mechanism),
                        iterations=item.iterations,
                        salt=salt,
                        salted_password=salted_password(item.mechanism, item.password, salt, item.iterations),
                    )
                    for item, salt in zip(upsertions, salts, strict=True)
                ],
                deletions=[deletion(name=item.user, mechanism=int(item.mechanism)) for item in deletions],
            )

        answer = await self._change(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, build, lambda answer: answer.results)
        return {result.user: _item_error(result) for result in answer.results}

    async def _ask(self, api_key: int, build: Callable[[MessageCodec], Message], floor: int = 0) -> Message:
        connection = self._connection
        if connection is None or not connection.is_usable:
            connection = self._connection = await self._connect_any()
        return await connection.request(api_key, build, floor=floor)

    async def _change(
        self, api_key: int, build: Callable[[MessageCodec], Message], items: Callable[[Message], list[Any]]
    ) -> Message:
        """Ask; where every item says NOT_CONTROLLER nothing was done, so ask the controller instead."""
        answer = await self._ask(api_key, build)
        found = items(answer)
        if not found or any(item.error_code != NOT_CONTROLLER for item in found):
            return answer
        cluster = await self.describe_cluster()
        controller = cluster.nodes.get(cluster.controller_id)
        if controller is None:
            return answer
        await self.close()
        self._connection = await connect(controller, self._settings)
        return await self._ask(api_key, build)

    async def _connect_any(self) -> KafkaConnection:
        """Return a connection to the first bootstrap server that answers.

        A refused login is final: the other nodes know no other users.
        """
        failures: list[ClientError] = []
        for address in self._settings.bootstrap_servers:
            try:
                return await connect(address, self._settings)
            except AuthenticationFailedError:
                raise
            except CannotConnectError as failure:
                failures.append(failure)
        raise CannotConnectError("; ".join(map(str, failures))) from failures[-1]


def _token(described: Message) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=f"{described.principal_type}:{described.principal_name}",
        requester=f"{described.token_requester_principal_type}:{described.token_requester_principal_name}",
        renewers=tuple(f"{each.principal_type}:{each.principal_name}" for each in described.renewers),
        issue_timestamp_ms=described.issue_timestamp,
        max_timestamp_ms=described.max_timestamp,
        expiration_timestamp_ms=described.expiry_timestamp,
        token_id=described.token_id,
    )


def _batches(items: Sequence[_Item]) -> list[Sequence[_Item]]:
    return [items[at : at + MAX_ITEMS] for at in range(0, len(items), MAX_ITEMS)]


def _creations(bindings: Sequence[AclBinding]) -> Callable[[MessageCodec], Message]:
    def build(codec: MessageCodec) -> Message:
        creation = codec.struct("AclCreation")
        return codec.new(creations=[creation(**acl_messages.creation_fields(item)) for item in bindings])

    return build


def _deletions(filters: Sequence[AclBindingFilter]) -> Callable[[MessageCodec], Message]:
    def build(codec: MessageCodec) -> Message:
        deletion = codec.struct("DeleteAclsFilter")
        return codec.new(filters=[deletion(**acl_messages.filter_fields(item)) for item in filters])

    return build


def _refuse_unknown(binding_filter: AclBindingFilter) -> None:
    if binding_filter.is_unknown:
        # a broker closes the connection at UNKNOWN, without a word
        raise AclValueError("a filter with an UNKNOWN field matches nothing, use ANY")


def _item_error(item: Message) -> KafkaError | None:
    return KafkaError(item.error_code, item.get("error_message")) if item.error_code else None


def _mechanism_name(code: int) -> str:
    mechanism = ScramMechanism.from_code(code)
    return mechanism.mechanism_name if mechanism else f"UNKNOWN({code})"
