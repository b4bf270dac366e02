"""Administration of a cluster: the queries and changes of operators, as methods with values.

A broker of a KRaft cluster forwards changes to its controller, so the client can use any node. If a node
answers NOT_CONTROLLER, the client tries the controller that it names, once. Errors of single items are
returned, because the other items of the request took effect; an error of the whole request is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeVar

from kustos import __version__
from kustos.acl import EVERY_BINDING, AclBinding, AclBindingFilter, AclOperation, AclValueError
from kustos.client.admin.acl_messages import (
    creation_fields,
    described_bindings,
    filter_fields,
    matching_binding,
)
from kustos.client.connection import KafkaConnection
from kustos.client.errors import (
    NOT_CONTROLLER,
    AuthenticationFailedError,
    CannotConnectError,
    ClientError,
    KafkaError,
    Requester,
    raise_for,
)
from kustos.client.sasl import connect
from kustos.client.settings import ClientSettings, NodeAddress
from kustos.metadata import ScramMechanism, salted_password
from kustos.metadata.control import ConfigResourceType, UpgradeType
from kustos.metadata.records import DelegationTokenRecord
from kustos.runtime import Entropy, SystemEntropy, random_text
from kustos.wire import ApiKey, Message, MessageCodec

_Item = TypeVar("_Item")

MAX_ITEMS: Final = 1000
"""The maximum number of ACLs, filters or users in one request: a controller accepts 10,000 records in one
batch, and a filter may remove several."""


NEEDED: Final = {
    ApiKey.DESCRIBE_ACLS: AclOperation.DESCRIBE,
    ApiKey.CREATE_ACLS: AclOperation.ALTER,
    ApiKey.DELETE_ACLS: AclOperation.ALTER,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: AclOperation.DESCRIBE,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: AclOperation.ALTER,
    ApiKey.UPDATE_FEATURES: AclOperation.ALTER,
}
"""The operation on the cluster that Kafka requires for each request."""


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The identity of a cluster; `controller_id` is -1 if it is unknown."""

    cluster_id: str | None
    controller_id: int
    nodes: dict[int, NodeAddress]


@dataclass(frozen=True, slots=True)
class DeletedAcls:
    """The ACLs that one filter removed, or its error."""

    binding_filter: AclBindingFilter
    deleted: tuple[AclBinding, ...] = ()
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True)
class DescribedScramUser:
    """A user's mechanisms with their iterations, or the error."""

    name: str
    credentials: tuple[tuple[str, int], ...] = ()
    error: KafkaError | None = None


@dataclass(frozen=True, slots=True)
class PasswordUpsertion:
    """A password to set; only its salted form leaves this process (RFC 5802)."""

    user: str
    mechanism: ScramMechanism
    password: bytes = field(repr=False)
    iterations: int = 4096


@dataclass(frozen=True, slots=True)
class CredentialDeletion:
    """A credential to remove."""

    user: str
    mechanism: ScramMechanism


class AdminClient:
    """Queries and changes a cluster over one connection at a time; use it as an async context manager.

    Every method raises `CannotConnectError`, `AuthenticationFailedError`, `ConnectionClosedError` or
    `UnsupportedVersionError` if there is no answer, and `KafkaError` if the cluster refuses.
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
        """Return the level of each feature, such as `metadata.version`; empty if the node reports none."""
        names = {"client_software_name": "kustos", "client_software_version": __version__}
        answer = await self._ask(ApiKey.API_VERSIONS, lambda codec: codec.root.fit(**names))
        raise_for(answer.error_code)
        return {each.name: each.max_version_level for each in answer.get("finalized_features", ())}

    async def describe_features(self) -> dict[str, tuple[int, int, int]]:
        """Return feature -> (lowest supported, highest supported, finalized level)."""
        names = {"client_software_name": "kustos", "client_software_version": __version__}
        answer = await self._ask(ApiKey.API_VERSIONS, lambda codec: codec.root.fit(**names))
        raise_for(answer.error_code)
        levels = {each.name: each.max_version_level for each in answer.get("finalized_features", ())}
        return {
            each.name: (each.min_version, each.max_version, levels.get(each.name, 0))
            for each in answer.get("supported_features", ())
        }

    async def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: UpgradeType = UpgradeType.UPGRADE,
        *,
        validate_only: bool = False,
    ) -> KafkaError | None:
        """Set features to these levels, all or none, in one direction only; return the error, if any."""

        def build(codec: MessageCodec) -> Message:
            update = codec.struct("FeatureUpdateKey")
            updates = [
                update(feature=name, max_version_level=level, upgrade_type=upgrade_type)
                for name, level in levels.items()
            ]
            return codec.new(feature_updates=updates, validate_only=validate_only)

        answer = await self._ask(ApiKey.UPDATE_FEATURES, build, floor=1)
        errors = (
            self._item_error(ApiKey.UPDATE_FEATURES, each) for each in (answer, *answer.get("results", ()))
        )
        return next(filter(None, errors), None)

    async def describe_broker_configs(self, broker: str, names: Sequence[str]) -> dict[str, str | None]:
        """Return the named settings of a broker; the value is None if the node hides it, and unknown settings
        are missing.

        Needs DESCRIBE_CONFIGS on the cluster.
        """

        def build(codec: MessageCodec) -> Message:
            resource = codec.struct("DescribeConfigsResource")
            broker_resource = resource(
                resource_type=ConfigResourceType.BROKER, resource_name=broker, configuration_keys=list(names)
            )
            return codec.new(resources=[broker_resource])

        answer = await self._ask(ApiKey.DESCRIBE_CONFIGS, build)
        found: dict[str, str | None] = {}
        for result in answer.results:
            raise_for(result.error_code, result.error_message)
            found.update((config.name, config.value) for config in result.configs)
        return found

    async def describe_acls(self, binding_filter: AclBindingFilter = EVERY_BINDING) -> list[AclBinding]:
        """Return every ACL that the filter matches, in no fixed order."""
        _refuse_unknown(binding_filter)
        answer = await self._ask(
            ApiKey.DESCRIBE_ACLS, lambda codec: codec.new(**filter_fields(binding_filter))
        )
        self._require_success(ApiKey.DESCRIBE_ACLS, answer)
        return described_bindings(answer)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """Create ACLs and return one outcome per binding, in order; an ACL that exists is not an error."""
        outcomes: list[KafkaError | None] = []
        for batch in _batches(bindings):
            answer = await self._change(ApiKey.CREATE_ACLS, _creations(batch), lambda answer: answer.results)
            outcomes += [self._item_error(ApiKey.CREATE_ACLS, result) for result in answer.results]
        return outcomes

    async def delete_acls(self, filters: Sequence[AclBindingFilter]) -> list[DeletedAcls]:
        """Remove all ACLs that any filter matches and return one outcome per filter, in order."""
        for binding_filter in filters:
            _refuse_unknown(binding_filter)
        outcomes: list[DeletedAcls] = []
        for batch in _batches(filters):
            answer = await self._change(
                ApiKey.DELETE_ACLS, _deletions(batch), lambda answer: answer.filter_results
            )
            for binding_filter, result in zip(batch, answer.filter_results, strict=True):
                errors = [
                    self._item_error(ApiKey.DELETE_ACLS, item) for item in (result, *result.matching_acls)
                ]
                error = next(filter(None, errors), None)
                deleted = tuple(matching_binding(acl) for acl in result.matching_acls if acl.error_code == 0)
                outcomes.append(DeletedAcls(binding_filter, deleted, error))
        return outcomes

    async def describe_user_scram_credentials(self, users: Sequence[str] = ()) -> list[DescribedScramUser]:
        """Return the SCRAM users with these names, all users if no name is given, sorted by name."""

        def build(codec: MessageCodec) -> Message:
            # an empty list requests all users, as in Java: for null, a broker that refuses never answers (its
            # error response iterates over the null list; observed with 4.3.1)
            return codec.new(users=[codec.struct("UserName")(name=user) for user in users])

        api_key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
        answer = await self._ask(api_key, build)
        self._require_success(api_key, answer)
        found = [
            DescribedScramUser(
                result.user,
                tuple(sorted((_mechanism_name(i.mechanism), i.iterations) for i in result.credential_infos)),
                self._item_error(api_key, result),
            )
            for result in answer.results
        ]
        return sorted(found, key=lambda user: user.name)

    async def describe_delegation_tokens(self) -> list[DelegationTokenRecord]:
        """Return the tokens visible to this client, without their HMACs; the cluster refuses this over
        PLAINTEXT."""
        answer = await self._ask(
            ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda codec: codec.new(owners=None), floor=3
        )
        raise_for(answer.error_code)
        return [_token(described) for described in answer.tokens]

    async def alter_user_scram_credentials(
        self, upsertions: Sequence[PasswordUpsertion] = (), deletions: Sequence[CredentialDeletion] = ()
    ) -> dict[str, KafkaError | None]:
        """Set and remove credentials; return user -> outcome.

        A request may name each user once: two mechanisms of one user need two calls.
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

        api_key = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
        answer = await self._change(api_key, build, lambda answer: answer.results)
        return {result.user: self._item_error(api_key, result) for result in answer.results}

    def _require_success(self, api_key: ApiKey, answer: Message) -> None:
        error = self._item_error(api_key, answer)
        if error is not None:
            raise error

    def _item_error(self, api_key: ApiKey, item: Message) -> KafkaError | None:
        """Return the error of an answer, or of one of its items."""
        if not item.error_code:
            return None
        settings = self._settings
        requester = Requester(
            settings.principal,
            settings.who,
            NEEDED[api_key],
            ",".join(map(str, settings.bootstrap_servers)),
            settings.security_protocol != "PLAINTEXT",
        )
        return KafkaError(item.error_code, item.get("error_message"), requester)

    async def _ask(self, api_key: int, build: Callable[[MessageCodec], Message], floor: int = 0) -> Message:
        connection = self._connection
        if connection is None or not connection.is_open:
            connection = self._connection = await self._connect_any()
        return await connection.request(api_key, build, floor=floor)

    async def _change(
        self, api_key: int, build: Callable[[MessageCodec], Message], items: Callable[[Message], list[Any]]
    ) -> Message:
        """Send a change; if every item fails with NOT_CONTROLLER send it to the controller."""
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

        A refused login is final: the other nodes have the same users.
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
        return codec.new(creations=[creation(**creation_fields(item)) for item in bindings])

    return build


def _deletions(filters: Sequence[AclBindingFilter]) -> Callable[[MessageCodec], Message]:
    def build(codec: MessageCodec) -> Message:
        deletion = codec.struct("DeleteAclsFilter")
        return codec.new(filters=[deletion(**filter_fields(item)) for item in filters])

    return build


def _refuse_unknown(binding_filter: AclBindingFilter) -> None:
    if binding_filter.is_unknown:
        # on UNKNOWN, a broker closes the connection without an answer
        raise AclValueError("a filter with an UNKNOWN field matches nothing, use ANY")


def _mechanism_name(code: int) -> str:
    mechanism = ScramMechanism.from_code(code)
    return mechanism.mechanism_name if mechanism else f"UNKNOWN({code})"
