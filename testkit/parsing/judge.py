"""What kustos reads in a frame, beside what Kafka reads in it.

Both must refuse a frame, or read the same request in it. kustos may refuse more, for the reasons of a table;
it never reads what Kafka refuses, nor anything else than Kafka reads.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kustos.acl import KafkaPrincipal
from kustos.authorizer import StandardAuthorizer
from kustos.protocol import ADMIN_OFFERED, ADMIN_TABLE, TABLE, Guard, Opened, RefusedFrameError
from kustos.wire import (
    ApiKey,
    CorruptBatchError,
    MalformedMessageError,
    batch_headers,
    peek_api,
    request_frame,
)
from testkit.parsing.probe import TheirRequest
from testkit.protocol.driver import HOST, OFFERED, PRINCIPAL, GatewayAddresses, context_of

LENGTH_BYTES: Final = 4

CANONICAL: Final = "Frames that are not in canonical form"
NOT_OFFERED: Final = "not offered"
CLOSED_FOR: Final[Mapping[str, str]] = {
    "is not UTF-8|not UTF-8": CANONICAL,
    "a negative length|has a negative length": CANONICAL,
    "a varint is longer than its value needs": CANONICAL,
    "a varint does not fit 31 bits": CANONICAL,
    "a boolean that is neither 0 nor 1": CANONICAL,
    "a struct mark": CANONICAL,
    "tagged fields out of order|out of order or too long": CANONICAL,
    "a tagged field (of a wrong size|beyond the message)": CANONICAL,
    "tagged fields, more than": "Unknown tagged fields",
    "has more than .* elements|bytes is too large": "Limits of list elements",
}
"""Why kustos refuses frames that Kafka reads, as regular expressions → the difference that explains it."""


@dataclass(frozen=True, slots=True)
class OurRequest:
    """What kustos reads in a frame.

    `canonical`: header and body written again; None for a frame that is refused. `is_transactional`: whether
    records are in a transaction, None if their batches cannot be read.
    """

    canonical: bytes | None
    is_transactional: bool | None = False
    refusal: str = ""


def _guard(admin: bool) -> Guard:
    authorizer = StandardAuthorizer()
    authorizer.complete_initial_load()
    session = authorizer.session(KafkaPrincipal.parse(PRINCIPAL), HOST)
    offered, table = (ADMIN_OFFERED, ADMIN_TABLE) if admin else (OFFERED, TABLE)
    return Guard(session, context_of, GatewayAddresses(), offered, table=table)


CLIENTS_GUARD: Final = _guard(admin=False)
ADMIN_GUARD: Final = _guard(admin=True)


def opened(frame: bytes) -> Opened:
    """Return the request in a frame; raise `RefusedFrameError`."""
    try:
        key = peek_api(frame)[0]
    except MalformedMessageError as error:
        raise RefusedFrameError(str(error)) from None
    guard = ADMIN_GUARD if key not in TABLE else CLIENTS_GUARD
    found = guard.open(frame)
    if isinstance(found, bytes):
        raise RefusedFrameError(f"{NOT_OFFERED}: this version of ApiVersions")
    return found


def ours(frame: bytes) -> OurRequest:
    """Return what kustos reads in a frame."""
    try:
        found = opened(frame)
    except RefusedFrameError as refusal:
        return OurRequest(None, refusal=str(refusal))
    exchange = found.exchange
    header, codec = exchange.header, exchange.codec
    # Kafka takes no name for an empty one
    canonical = request_frame(
        codec, header.api_key, header.correlation_id, header.client_id or "", codec.encode(exchange.request)
    )
    return OurRequest(canonical[LENGTH_BYTES:], transactional(found))


def transactional(request: Opened) -> bool | None:
    """Return whether records of a Produce are in a transaction, None if their batches cannot be read."""
    exchange = request.exchange
    if exchange.header.api_key != ApiKey.PRODUCE:
        return False
    partitions = [partition for topic in exchange.request.topic_data for partition in topic.partition_data]
    try:
        batches = [batch for partition in partitions for batch in batch_headers(partition.records or b"")]
    except CorruptBatchError:
        return None
    return any(batch.is_transactional for batch in batches)


def difference(mine: OurRequest, theirs: TheirRequest) -> str | None:
    """Return how the two readings of a frame differ beyond what `CLOSED_FOR` explains, None if not at all."""
    if mine.canonical is None:
        if theirs.canonical is None or NOT_OFFERED in mine.refusal:
            return None
        return None if excuse(mine) else f"only kustos refuses it: {mine.refusal}"
    if theirs.canonical is None:
        return f"only Kafka refuses it: {theirs.refusal}"
    if mine.canonical != theirs.canonical:
        return f"kustos reads {mine.canonical.hex(' ')}, Kafka {theirs.canonical.hex(' ')}"
    if theirs.is_transactional and mine.is_transactional is False:
        return "only Kafka sees a transaction"
    return None


def excuse(mine: OurRequest) -> str | None:
    """Return the reason for which kustos alone may refuse a frame, None if there is none."""
    return next((reason for reason in CLOSED_FOR if re.search(reason, mine.refusal)), None)
