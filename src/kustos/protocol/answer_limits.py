"""Lowers the answer size that a request allows when memory is short.

Only Fetch and ShareFetch have such a field: `max_bytes`, which a broker exceeds only by the first batch
(KIP-74).
"""

from collections.abc import Callable
from typing import Final

from kustos.protocol.guard import INT32_BYTES, Opened
from kustos.wire import ApiKey

WITHOUT_REPLICA_ID_VERSION: Final = 15
"""From this version of Fetch on, a follower sends its id in a tagged field (KIP-903)."""


def limit_answer(opened: Opened, grant: Callable[[int], int]) -> None:
    """Lower the `max_bytes` of a Fetch or ShareFetch to the granted number; call before its handler runs.

    Only these four of a Fetch's own bytes change, since they may go upstream otherwise unchanged. In a
    ShareFetch names of any length precede them: it is encoded again.
    """
    exchange = opened.exchange
    if exchange.header.api_key not in {ApiKey.FETCH, ApiKey.SHARE_FETCH}:
        return
    wanted_bytes = exchange.request.max_bytes
    granted_bytes = grant(wanted_bytes)
    if granted_bytes == wanted_bytes:
        return
    exchange.request = exchange.request.replace(max_bytes=granted_bytes)
    if exchange.header.api_key == ApiKey.SHARE_FETCH:
        opened.is_exact = False
        return
    frame, at = opened.frame, max_bytes_at(exchange.header.body_offset, exchange.version)
    patched = granted_bytes.to_bytes(INT32_BYTES, "big", signed=True)
    opened.frame = b"".join((frame[:at], patched, frame[at + INT32_BYTES :]))


def max_bytes_at(body_offset: int, version: int) -> int:
    """Return the offset of `max_bytes`: after `max_wait`, `min_bytes` and, in old versions, `replica_id`."""
    fields_before = 2 if version >= WITHOUT_REPLICA_ID_VERSION else 3
    return body_offset + fields_before * INT32_BYTES
