"""The requests of these tests as fields of kio's classes, in versions that name topics."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from kio.schema.create_acls.v3.request import AclCreation
from kio.schema.create_topics.v5.request import CreatableReplicaAssignment, CreatableTopic
from kio.schema.delete_acls.v3.request import DeleteAclsFilter
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.schema.join_group.v3.request import JoinGroupRequestProtocol
from kio.schema.metadata.v12.request import MetadataRequestTopic
from kio.schema.produce.v9.request import PartitionProduceData, TopicProduceData
from kio.schema.share_fetch.v1.request import FetchPartition as SharePartition
from kio.schema.share_fetch.v1.request import FetchTopic as ShareTopic
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from kustos.acl import AclBinding
from kustos.wire.record_batch import batch_of

PRODUCE, FETCH, METADATA, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP = 0, 1, 3, 10, 11, 14
DESCRIBE_GROUPS, CREATE_TOPICS, DELETE_RECORDS, CREATE_ACLS, DELETE_ACLS = 15, 19, 21, 30, 31
INCREMENTAL_ALTER_CONFIGS, SHARE_GROUP_HEARTBEAT, SHARE_FETCH = 44, 76, 78

VERSIONS: Final = {
    PRODUCE: 9,
    FETCH: 12,
    METADATA: 12,
    FIND_COORDINATOR: 3,
    JOIN_GROUP: 3,
    SYNC_GROUP: 3,
    DESCRIBE_GROUPS: 5,
    CREATE_TOPICS: 5,
    DELETE_RECORDS: 2,
    CREATE_ACLS: 3,
    DELETE_ACLS: 3,
    INCREMENTAL_ALTER_CONFIGS: 1,
    SHARE_GROUP_HEARTBEAT: 1,
    SHARE_FETCH: 1,
}
"""The last that name topics; and a JoinGroup that a broker answers by a member id first is of version 4."""

SHARE_MEMBER: Final = "DAAAAAAAQACAAAAAAAAAAA"
LONG_MS: Final = 300_000
"""How long a broker lets a request wait: longer than any test takes."""


def _milliseconds(count: int) -> i32Timedelta:
    return i32Timedelta.parse(timedelta(milliseconds=count))


def produce(topic: str, value: bytes, *, acks: int = 1) -> dict[str, Any]:
    """Return a Produce of one record."""
    records = Records(batch_of(0, -1, 0, [value]).encode())
    data = TopicProduceData(
        name=TopicName(topic), partition_data=(PartitionProduceData(index=i32(0), records=records),)
    )
    return {
        "transactional_id": None,
        "acks": i16(acks),
        "timeout": _milliseconds(LONG_MS),
        "topic_data": (data,),
    }


def fetch(topic: str, *, max_wait_ms: int) -> dict[str, Any]:
    """Return a Fetch from the beginning, outside of any session, that waits for a first byte."""
    partition = FetchPartition(
        partition=i32(0),
        current_leader_epoch=i32(-1),
        fetch_offset=i64(0),
        last_fetched_epoch=i32(-1),
        log_start_offset=i64(-1),
        partition_max_bytes=i32(1 << 20),
    )
    return {
        "cluster_id": None,
        "replica_id": i32(-1),
        "max_wait": _milliseconds(max_wait_ms),
        "min_bytes": i32(1),
        "max_bytes": i32(1 << 20),
        "isolation_level": i8(0),
        "session_id": i32(0),
        "session_epoch": i32(-1),
        "topics": (FetchTopic(topic=TopicName(topic), partitions=(partition,)),),
        "forgotten_topics_data": (),
        "rack_id": "",
    }


def share_from_the_beginning(group: str) -> dict[str, Any]:
    """Return the setting by which a share group reads what is there already."""
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=i8(0), value="earliest")
    resource = AlterConfigsResource(resource_type=i8(32), resource_name=group, configs=(config,))
    return {"resources": (resource,), "validate_only": False}


def share_heartbeat(group: str, epoch: int, topic: str) -> dict[str, Any]:
    """Return the heartbeat of a member that reads one topic."""
    return {
        "group_id": GroupId(group),
        "member_id": SHARE_MEMBER,
        "member_epoch": i32(epoch),
        "rack_id": None,
        "subscribed_topic_names": (TopicName(topic),),
    }


def share_fetch(group: str, topic_id: UUID) -> dict[str, Any]:
    """Return a first ShareFetch, which waits for a first byte."""
    partition = SharePartition(partition_index=i32(0), acknowledgement_batches=())
    return {
        "group_id": GroupId(group),
        "member_id": SHARE_MEMBER,
        "share_session_epoch": i32(0),
        "max_wait": _milliseconds(LONG_MS),
        "min_bytes": i32(1),
        "max_bytes": i32(1 << 20),
        "max_records": i32(100),
        "batch_size": i32(100),
        "topics": (ShareTopic(topic_id=topic_id, partitions=(partition,)),),
        "forgotten_topics_data": (),
    }


def join_group(group: str, member_id: str = "") -> dict[str, Any]:
    """Return a JoinGroup; it waits for every other member to join again."""
    return {
        "group_id": GroupId(group),
        "session_timeout": _milliseconds(LONG_MS),
        "rebalance_timeout": _milliseconds(LONG_MS),
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=b""),),
    }


def sync_group(group: str, generation: int, member_id: str) -> dict[str, Any]:
    """Return a SyncGroup that assigns nothing; that of a follower waits for the leader's."""
    return {
        "group_id": GroupId(group),
        "generation_id": i32(generation),
        "member_id": member_id,
        "group_instance_id": None,
        "assignments": (),
    }


def find_coordinator(group: str) -> dict[str, Any]:
    """Return the question for a group's broker; the first one has Kafka make the topic for groups."""
    return {"key": group, "key_type": i8(0)}


def describe_group(group: str) -> dict[str, Any]:
    """Return the question about one group."""
    return {"groups": (GroupId(group),), "include_authorized_operations": False}


def metadata(topic: str) -> dict[str, Any]:
    """Return the question about one topic."""
    return {
        "topics": (MetadataRequestTopic(topic_id=None, name=TopicName(topic)),),
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
    }


def create_topic(topic: str, brokers: Sequence[int]) -> dict[str, Any]:
    """Return the creation of a topic of one partition on these brokers, the first its leader."""
    placed = CreatableReplicaAssignment(
        partition_index=i32(0), broker_ids=tuple(BrokerId(each) for each in brokers)
    )
    made = CreatableTopic(
        name=TopicName(topic),
        num_partitions=i32(-1),
        replication_factor=i16(-1),
        assignments=(placed,),
        configs=(),
    )
    return {"topics": (made,), "timeout": _milliseconds(LONG_MS), "validate_only": False}


def delete_records(topic: str, offset: int) -> dict[str, Any]:
    """Return the deletion of the records before an offset; it waits until all replicas have done so."""
    partition = DeleteRecordsPartition(partition_index=i32(0), offset=i64(offset))
    deleted = DeleteRecordsTopic(name=TopicName(topic), partitions=(partition,))
    return {"topics": (deleted,), "timeout": _milliseconds(LONG_MS)}


def create_acls(*bindings: AclBinding) -> dict[str, Any]:
    """Return the creation of these."""
    creations = tuple(
        AclCreation(
            resource_type=i8(each.pattern.resource_type),
            resource_name=each.pattern.name,
            resource_pattern_type=i8(each.pattern.pattern_type),
            principal=each.entry.principal,
            host=each.entry.host,
            operation=i8(each.entry.operation),
            permission_type=i8(each.entry.permission_type),
        )
        for each in bindings
    )
    return {"creations": creations}


def delete_acls(*bindings: AclBinding) -> dict[str, Any]:
    """Return the deletion of exactly these."""
    filters = tuple(
        DeleteAclsFilter(
            resource_type_filter=i8(each.pattern.resource_type),
            resource_name_filter=each.pattern.name,
            pattern_type_filter=i8(each.pattern.pattern_type),
            principal_filter=each.entry.principal,
            host_filter=each.entry.host,
            operation=i8(each.entry.operation),
            permission_type=i8(each.entry.permission_type),
        )
        for each in bindings
    )
    return {"filters": filters}
