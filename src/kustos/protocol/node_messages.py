"""Converts a node's own features, quorum and settings between messages and values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kustos.metadata.control import (
    SUPPORTED_FEATURES,
    ApiError,
    ConfigChange,
    ConfigOperation,
    FeatureUpdate,
    ResourceChanges,
    UpgradeType,
)
from kustos.protocol.admin import error_fields
from kustos.protocol.shapes import shortened
from kustos.wire import ApiKey, Message, response_codec

METADATA_TOPIC = "__cluster_metadata"
FEATURES_VERSION = 4
"""The version of ApiVersions used to build features; answers in other versions copy the fields they have."""

UPDATE_FAILED = "The update failed for all features since the following feature had an error: "
CONTROLLERS = 2
NO_ERROR = "NONE"
"""The text that Kafka sends for an updated feature."""


@dataclass(frozen=True, slots=True)
class LocalVoter:
    """The only voter of this node's own log: itself, with its controller listeners."""

    node_id: int
    directory_id: bytes
    """16 bytes, all zero if the directory has no id."""
    listeners: tuple[tuple[str, str, int], ...]
    """Name, host and port."""


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The state of the log: `end_offset` is the next offset; all earlier records are committed."""

    epoch: int
    end_offset: int
    now_ms: int


def features_message(finalized: Mapping[str, int], epoch: int) -> Message:
    """Return an ApiVersions answer with only the features of this node."""
    root = response_codec(ApiKey.API_VERSIONS, FEATURES_VERSION).root
    supported, final = root.ELEMENTS["supported_features"], root.ELEMENTS["finalized_features"]
    return root(
        supported_features=[
            supported(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in SUPPORTED_FEATURES.items()
        ],
        finalized_features_epoch=epoch,
        finalized_features=[
            final(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized.items()
        ],
    )


def updates_of(request: Message) -> tuple[FeatureUpdate, ...]:
    """Return the updates of UpdateFeatures. In version 0 every update is an upgrade, as in Kafka."""
    return tuple(
        FeatureUpdate(
            update.feature,
            update.max_version_level,
            UpgradeType.from_code(update.get("upgrade_type", UpgradeType.UPGRADE)),
        )
        for update in request.feature_updates
    )


def updated_features(message_type: type[Message], request: Message, error: ApiError | None) -> Message:
    """Return the answer to UpdateFeatures; on success, versions before 2 name each feature."""
    if error is not None:
        text = shortened(f"{UPDATE_FAILED}{error.message}")
        return message_type(error_code=error.code.value, error_message=text)
    if "results" not in message_type.FIELDS:
        return message_type(error_message=None)
    result = message_type.ELEMENTS["results"]
    results = [
        result(feature=update.feature, error_code=0, error_message=NO_ERROR)
        for update in request.feature_updates
    ]
    return message_type(error_message=None, results=results)


def asks_for_metadata(request: Message) -> bool:
    """Return whether DescribeQuorum names exactly the one partition of the metadata log."""
    requested = [
        (topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics
    ]
    return requested == [(METADATA_TOPIC, [0])]


def described_quorum(message_type: type[Message], voter: LocalVoter, state: QuorumState) -> Message:
    """Return the answer to DescribeQuorum: a leader without followers."""
    topic = message_type.ELEMENTS["topics"]
    partition = topic.ELEMENTS["partitions"]
    replica = partition.ELEMENTS["current_voters"]
    fields = {
        "replica_id": voter.node_id,
        "replica_directory_id": voter.directory_id,
        "log_end_offset": state.end_offset,
        "last_fetch_timestamp": state.now_ms,
        "last_caught_up_timestamp": state.now_ms,
    }
    described = partition(
        partition_index=0,
        leader_id=voter.node_id,
        leader_epoch=state.epoch,
        high_watermark=state.end_offset,
        current_voters=[replica(**_known(replica, fields))],
        observers=[],
        **_known(partition, {"error_message": ""}),
    )
    values: dict[str, object] = {"topics": [topic(topic_name=METADATA_TOPIC, partitions=[described])]}
    if "nodes" in message_type.FIELDS:
        node = message_type.ELEMENTS["nodes"]
        listener = node.ELEMENTS["listeners"]
        listeners = [listener(name=name, host=host, port=port) for name, host, port in voter.listeners]
        values["nodes"] = [node(node_id=voter.node_id, listeners=listeners)]
    return message_type(**values, **_known(message_type, {"error_message": ""}))


def undescribed_quorum(message_type: type[Message], request: Message, code: int, message: str) -> Message:
    """Return the answer to DescribeQuorum about partitions that this node does not lead."""
    topic = message_type.ELEMENTS["topics"]
    partition = topic.ELEMENTS["partitions"]
    errors = {"error_code": code} | _known(partition, {"error_message": message})
    return message_type(
        topics=[
            topic(
                topic_name=requested.topic_name,
                partitions=[
                    partition(partition_index=each.partition_index, **errors) for each in requested.partitions
                ],
            )
            for requested in request.topics
        ],
        **_known(message_type, {"error_message": ""}),
    )


def _known(message_type: type[Message], values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if name in message_type.FIELDS}


def described_controllers(
    message_type: type[Message], cluster_id: str, voter: LocalVoter, listener: str
) -> Message:
    """Return the answer to DescribeCluster on a controllers' listener: this node with its address there."""
    node = message_type.ELEMENTS["brokers"]
    return message_type(
        cluster_id=cluster_id,
        controller_id=voter.node_id,
        brokers=[
            node(broker_id=voter.node_id, host=host, port=port, rack=None)
            for name, host, port in voter.listeners
            if name == listener
        ],
        **_known(message_type, {"endpoint_type": CONTROLLERS, "error_message": None}),
    )


def changes_of(resource: Message) -> ResourceChanges:
    """Return the changes of an item of IncrementalAlterConfigs; its operations must be known."""
    return ResourceChanges(
        resource.resource_type,
        resource.resource_name,
        tuple(
            ConfigChange(each.name, ConfigOperation(each.config_operation), each.value)
            for each in resource.configs
        ),
    )


def altered_configs(
    message_type: type[Message], results: Iterable[tuple[int, str, ApiError | None]]
) -> Message:
    """Return the answer to IncrementalAlterConfigs: type, name and error of each resource."""
    response = message_type.ELEMENTS["responses"]
    return message_type(
        responses=[
            response(resource_type=kind, resource_name=name, **error_fields(error))
            for kind, name, error in results
        ]
    )


@dataclass(frozen=True, slots=True)
class Synonym:
    """A source and value of a setting; a hidden value is null."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """A described setting. `synonyms`: its values in order of precedence; the first is in effect."""

    name: str
    value: str | None
    source: int
    config_type: int
    is_sensitive: bool = False
    read_only: bool = False
    synonyms: tuple[Synonym, ...] = ()
    documentation: str | None = None


def described_configs(
    message_type: type[Message],
    request: Message,
    found: Sequence[Sequence[DescribedConfig] | ApiError],
) -> Message:
    """Return the answer to DescribeConfigs; `found`: the settings or the error of each resource."""
    result = message_type.ELEMENTS["results"]
    return message_type(
        results=[
            result(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=each.code.value if isinstance(each, ApiError) else 0,
                error_message=shortened(each.message or "") if isinstance(each, ApiError) else "",
                configs=[]
                if isinstance(each, ApiError)
                else [_config(result.ELEMENTS["configs"], request, config) for config in each],
            )
            for resource, each in zip(request.resources, found, strict=True)
        ]
    )


def _config(message_type: type[Message], request: Message, config: DescribedConfig) -> Message:
    synonym = message_type.ELEMENTS["synonyms"]
    shown = config.synonyms if request.include_synonyms else ()
    return message_type(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=[synonym(name=each.name, value=each.value, source=each.source) for each in shown],
        **_known(
            message_type,
            {
                "config_type": config.config_type,
                "documentation": config.documentation if request.get("include_documentation") else None,
            },
        ),
    )
