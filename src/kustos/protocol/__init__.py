"""The guard, no IO: the authorization table, its one interpreter, fetch-session bookkeeping."""

from kustos.protocol import admin, node_messages, token_messages
from kustos.protocol.admin_table import ADMIN_OFFERED, ADMIN_ROWS, ADMIN_TABLE
from kustos.protocol.answer_limits import limit_answer
from kustos.protocol.api_versions import (
    LOCAL_APIS,
    OfferedApis,
    api_versions_response,
    common_versions,
)
from kustos.protocol.codes import MESSAGES, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION
from kustos.protocol.described_acls import DescribedAcls
from kustos.protocol.effects import (
    AllTopics,
    Ask,
    AskStreamed,
    Effect,
    GiveWay,
    Handler,
    Hangup,
    ListTopics,
    Outcome,
    Relay,
    Reply,
    ResolveTopicIds,
    Serve,
    Silence,
    Streamed,
    StreamedAnswer,
    Unwrap,
    UpstreamAnswer,
)
from kustos.protocol.envelopes import principal_bytes
from kustos.protocol.exchange import (
    Addresses,
    Check,
    ContextAuthorizer,
    Decided,
    Decider,
    Exchange,
    UndecidedDecider,
    WrittenAt,
)
from kustos.protocol.guard import ContextOf, Guard, Opened, RefusedFrameError
from kustos.protocol.limits import items_max
from kustos.protocol.node_messages import DescribedConfig, LocalVoter, Synonym
from kustos.protocol.repeated import Repetition
from kustos.protocol.steps import (
    ClusterOperations,
    Conceal,
    Gate,
    Hide,
    Operations,
    RefuseRequestError,
    Row,
    Step,
    Strip,
)
from kustos.protocol.table import ROWS, TABLE, refusal_body
from kustos.protocol.topic_patterns import ClusterTopics

__all__ = [
    "ADMIN_OFFERED",
    "ADMIN_ROWS",
    "ADMIN_TABLE",
    "LOCAL_APIS",
    "MESSAGES",
    "ROWS",
    "TABLE",
    "UNKNOWN_SERVER_ERROR",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "Addresses",
    "AllTopics",
    "Ask",
    "AskStreamed",
    "Check",
    "ClusterOperations",
    "ClusterTopics",
    "Conceal",
    "ContextAuthorizer",
    "ContextOf",
    "Decided",
    "Decider",
    "DescribedAcls",
    "DescribedConfig",
    "Effect",
    "Exchange",
    "Gate",
    "GiveWay",
    "Guard",
    "Handler",
    "Hangup",
    "Hide",
    "ListTopics",
    "LocalVoter",
    "OfferedApis",
    "Opened",
    "Operations",
    "Outcome",
    "RefuseRequestError",
    "RefusedFrameError",
    "Relay",
    "Repetition",
    "Reply",
    "ResolveTopicIds",
    "Row",
    "Serve",
    "Silence",
    "Step",
    "Streamed",
    "StreamedAnswer",
    "Strip",
    "Synonym",
    "UndecidedDecider",
    "Unwrap",
    "UpstreamAnswer",
    "WrittenAt",
    "admin",
    "api_versions_response",
    "common_versions",
    "items_max",
    "limit_answer",
    "node_messages",
    "principal_bytes",
    "refusal_body",
    "token_messages",
]
