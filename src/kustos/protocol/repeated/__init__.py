"""Requests that repeat an earlier one of their connection, and by the same ACLs get the same decisions.

One comparison of versions shows that no ACL changed since. Every decision is audited as always, before the
request is sent.
"""

from kustos.protocol.repeated.exact import ExactExchange
from kustos.protocol.repeated.produce import ProduceShape
from kustos.protocol.repeated.requests import RecalledDecider, RepeatedRequests, Repetition

__all__ = ["ExactExchange", "ProduceShape", "RecalledDecider", "RepeatedRequests", "Repetition"]
