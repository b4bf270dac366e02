"""Kafka's APIs by key and name (`org.apache.kafka.common.protocol.ApiKeys`, 4.4.0), and valid ApiVersions."""

import re
from enum import IntEnum, unique
from functools import lru_cache
from typing import Final

from kustos.wire.message import Message
from kustos.wire.schemas import APIS

SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Valid names of client software and versions in ApiVersions (KIP-511)."""


@unique
class ApiKey(IntEnum):
    """The APIs that kustos refers to by name; it handles all others by number."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    FETCH_SNAPSHOT = 59
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = 93
    UNREGISTER_CONTROLLER = 94


@lru_cache(maxsize=256)
def api_name(api_key: int) -> str:
    """Return Kafka's name of an API, such as `DescribeAcls`; `Unknown(n)` for an unknown key."""
    api = APIS.get(api_key)
    if api is None:
        return f"Unknown({api_key})"
    return "".join(part.capitalize() for part in api.name.split("_"))


def api_constant(api_key: int) -> str:
    """Return the constant's name in Kafka's code, such as `DESCRIBE_ACLS`, which its messages show."""
    api = APIS.get(api_key)
    return (f"unknown({api_key})" if api is None else api.name).upper()


NO_NODE: Final = -1
"""The node id of an ApiVersions that names no node."""


def is_valid_api_versions(request: Message) -> bool:
    """Return whether a broker accepts an ApiVersions (`ApiVersionsRequest.isValid`).

    It names the client's software as KIP-511 requires, and both cluster and node or neither (KIP-1242).
    Versions without these fields are valid.
    """
    if "client_software_name" not in request.FIELDS:
        return True
    names = (request.client_software_name, request.client_software_version)
    if not all(SOFTWARE_NAME.fullmatch(name) is not None for name in names):
        return False
    names_node: bool = request.get("node_id", NO_NODE) != NO_NODE
    return (request.get("cluster_id") is not None) == names_node
