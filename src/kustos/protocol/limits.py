"""Limits on the size of one request, by API.

A list element takes as little as one byte of a frame, but up to ten microseconds to decide and answer, while
all other clients wait. So a request may have as many as real clients need, and no more. List elements at all
depths and tagged fields are counted, before any of them is read.
"""

from collections.abc import Mapping
from typing import Final

from kustos.wire import ApiKey

FRAME_WITHOUT_RECORDS_BYTES_MAX: Final = 16 * 2**20
"""Largest frame of any request but Produce: the largest is the SyncGroup of a large group's leader."""

TOKEN_FRAME_BYTES_MAX: Final = 64 * 2**10
"""Largest CreateDelegationToken: any client may send it, and every node keeps the token in memory."""

FEW: Final = 100
"""For requests without lists or with short ones, such as the protocols of JoinGroup."""

PARTITIONS: Final = 12_000
"""Topics and partitions. Kafka recommends at most 4,000 partitions per broker, each possibly in its own
topic; a coordinator accepts about 10,000 in one commit, as they must fit into one batch
(`message.max.bytes`)."""

REPLICAS: Final = 3 * PARTITIONS
"""Partitions with their new replicas, as a rule three: `kafka-reassign-partitions.sh` sends a whole plan at
once."""

TOPICS: Final = 20_000
"""Topics requested by name: `kafka-topics.sh --describe` names all topics in one request."""

BATCHES: Final = PARTITIONS
"""Record batches in a Produce: from version 3 on a broker accepts one per partition, and refuses more."""

NAMES: Final = 10_000
"""Groups, topics or resources that a tool describes or deletes together: all that a large cluster has."""

CHANGES: Final = 20_000
"""Entries of a change. Kafka accepts up to 10,000 at once (`QuorumController.MAX_RECORDS_PER_USER_OP`) and
answers more with an error; to send that error we must read the request."""

MEMBERS: Final = 10_000
"""Members of one group: the largest have a few thousand."""

ACKNOWLEDGEMENTS: Final = 2 * PARTITIONS
"""Partitions and records that a member of a share group acknowledges together, one by one: a broker lets it
hold 2,000 of a partition (`group.share.partition.max.record.locks`)."""

RENEWERS: Final = 100
"""Renewers of a token: a few services."""

OWNERS: Final = 1000
"""Users whose tokens are requested at once."""

ITEMS_MAX: Final[Mapping[int, int]] = {
    ApiKey.PRODUCE: PARTITIONS,
    ApiKey.FETCH: PARTITIONS,
    ApiKey.LIST_OFFSETS: PARTITIONS,
    ApiKey.METADATA: TOPICS,
    ApiKey.OFFSET_COMMIT: PARTITIONS,
    ApiKey.OFFSET_FETCH: PARTITIONS,
    ApiKey.FIND_COORDINATOR: NAMES,
    ApiKey.LEAVE_GROUP: MEMBERS,
    ApiKey.SYNC_GROUP: MEMBERS,
    ApiKey.DESCRIBE_GROUPS: NAMES,
    ApiKey.CREATE_TOPICS: NAMES,
    ApiKey.DELETE_TOPICS: NAMES,
    ApiKey.DELETE_RECORDS: PARTITIONS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: PARTITIONS,
    ApiKey.ADD_PARTITIONS_TO_TXN: PARTITIONS,
    ApiKey.TXN_OFFSET_COMMIT: PARTITIONS,
    ApiKey.CREATE_ACLS: CHANGES,
    ApiKey.DELETE_ACLS: NAMES,
    ApiKey.DESCRIBE_CONFIGS: NAMES,
    ApiKey.ALTER_CONFIGS: CHANGES,
    ApiKey.ALTER_REPLICA_LOG_DIRS: PARTITIONS,
    ApiKey.DESCRIBE_LOG_DIRS: PARTITIONS,
    ApiKey.CREATE_PARTITIONS: PARTITIONS,
    ApiKey.DELETE_GROUPS: NAMES,
    ApiKey.ELECT_LEADERS: PARTITIONS,
    ApiKey.CREATE_DELEGATION_TOKEN: RENEWERS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: OWNERS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: CHANGES,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: REPLICAS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: PARTITIONS,
    ApiKey.OFFSET_DELETE: PARTITIONS,
    ApiKey.ALTER_CLIENT_QUOTAS: CHANGES,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: NAMES,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: CHANGES,
    ApiKey.DESCRIBE_PRODUCERS: PARTITIONS,
    ApiKey.DESCRIBE_TRANSACTIONS: NAMES,
    ApiKey.LIST_TRANSACTIONS: NAMES,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: PARTITIONS,
    ApiKey.CONSUMER_GROUP_DESCRIBE: NAMES,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: TOPICS,
    ApiKey.STREAMS_GROUP_HEARTBEAT: PARTITIONS,
    ApiKey.STREAMS_GROUP_DESCRIBE: NAMES,
    ApiKey.SHARE_GROUP_HEARTBEAT: PARTITIONS,
    ApiKey.SHARE_GROUP_DESCRIBE: NAMES,
    ApiKey.SHARE_FETCH: ACKNOWLEDGEMENTS,
    ApiKey.SHARE_ACKNOWLEDGE: ACKNOWLEDGEMENTS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: PARTITIONS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: PARTITIONS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: PARTITIONS,
}


def frame_bytes_max(api_key: int) -> int | None:
    """Return the largest frame of this API, None if only the listener's limit applies."""
    if api_key == ApiKey.PRODUCE:
        return None
    return (
        TOKEN_FRAME_BYTES_MAX
        if api_key == ApiKey.CREATE_DELEGATION_TOKEN
        else FRAME_WITHOUT_RECORDS_BYTES_MAX
    )


def items_max(api_key: int) -> int:
    """Return how many list elements and tagged fields a request of this API may have; `FEW` by default."""
    return ITEMS_MAX.get(api_key, FEW)
