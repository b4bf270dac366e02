"""The guard, no IO: the authorization table, its one interpreter, fetch-session bookkeeping."""

from kustos.protocol.admin_table import ADMIN_TABLE
from kustos.protocol.effects import (
    Answer,
    Ask,
    Effect,
    Handler,
    Hangup,
    ListTopics,
    Outcome,
    Relay,
    Reply,
    ResolveTopicIds,
    Serve,
    Unwrap,
)
from kustos.protocol.exchange import Addresses, Asker, Check, Decided, Decider, Exchange
from kustos.protocol.guard import Guard, Opened, RefusedFrameError
from kustos.protocol.table import TABLE, refusal_body

__all__ = [
    "ADMIN_TABLE",
    "TABLE",
    "Addresses",
    "Answer",
    "Ask",
    "Asker",
    "Check",
    "Decided",
    "Decider",
    "Effect",
    "Exchange",
    "Guard",
    "Handler",
    "Hangup",
    "ListTopics",
    "Opened",
    "Outcome",
    "RefusedFrameError",
    "Relay",
    "Reply",
    "ResolveTopicIds",
    "Serve",
    "Unwrap",
    "refusal_body",
]
