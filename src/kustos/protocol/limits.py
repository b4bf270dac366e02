"""Limits on the size of one request, by API.

A list element can be one byte of a frame, but it takes up to ten microseconds to decide and answer, while all
other clients wait. So each API has a limit that covers the needs of real clients. The limit counts list
elements at all depths and tagged fields, before any of them is read.
"""

from collections.abc import Mapping
from typing import Final

from kustos.wire import ApiKey

FRAME_WITHOUT_RECORDS_BYTES_MAX: Final = 16 * 2**20
"""Largest frame of any request except Produce: the SyncGroup of a large group's leader needs the most."""

TOKEN_FRAME_BYTES_MAX: Final = 64 * 2**10
"""Largest CreateDelegationToken: any client may send it, and every node keeps the token in memory."""

FEW: Final = 100
"""The limit for requests without lists or with short lists, such as the protocols of JoinGroup."""

PARTITIONS: Final = 12_000
"""Topics and partitions. Kafka recommends at most 4,000 partitions per broker, each possibly in its own
topic; a coordinator accepts about 10,000 in one commit, as they must fit into one batch
(`message.max.bytes`)."""

REPLICAS: Final = 3 * PARTITIONS
"""Partitions with their new replicas, usually three: `kafka-reassign-partitions.sh` sends a whole plan in one
request."""

TOPICS: Final = 20_000
"""Topics requested by name: `kafka-topics.sh --describe` names all topics in one request."""

BATCHES: Final = PARTITIONS
"""Record batches in a Produce: from version 3 on a broker accepts only one per partition."""

NAMES: Final = 10_000
"""Groups, topics or resources that a tool describes or deletes together: at most all of a large cluster."""

CHANGES: Final = 20_000
"""Entries of a change. Kafka accepts up to 10,000 at once (`QuorumController.MAX_RECORDS_PER_USER_OP`) and
answers larger requests with an error; to send this error kustos must read the request."""

MEMBERS: Final = 10_000
"""Members of one group: the largest have a few thousand."""

DESCRIBED_NODES: Final = 20_000
"""Nodes of a topology, and their topics, stores and successors (KIP-1331): five for each of 4,000 nodes, more
than any known application has."""

ACKNOWLEDGEMENTS: Final = 2 * PARTITIONS
"""Partitions and single records that a member of a share group acknowledges in one request: a broker lets it
hold 2,000 records of a partition (`group.share.partition.max.record.locks`)."""

RENEWERS: Final = 100
"""Renewers of a token: a few services."""

OWNERS: Final = 1000
"""Users whose tokens one request names."""

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
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: DESCRIBED_NODES,
    ApiKey.SHARE_GROUP_HEARTBEAT: PARTITIONS,
    ApiKey.SHARE_GROUP_DESCRIBE: NAMES,
    ApiKey.SHARE_FETCH: ACKNOWLEDGEMENTS,
    ApiKey.SHARE_ACKNOWLEDGE: ACKNOWLEDGEMENTS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: PARTITIONS,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: PARTITIONS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: PARTITIONS,
}


def frame_bytes_max(api_key: int) -> int | None:
    """Return the frame size limit of this API in bytes, None if only the listener's limit applies."""
    if api_key == ApiKey.PRODUCE:
        return None
    return (
        TOKEN_FRAME_BYTES_MAX
        if api_key == ApiKey.CREATE_DELEGATION_TOKEN
        else FRAME_WITHOUT_RECORDS_BYTES_MAX
    )


def items_max(api_key: int) -> int:
    """Return the limit on list elements and tagged fields in a request of this API; `FEW` by default."""
    return ITEMS_MAX.get(api_key, FEW)
