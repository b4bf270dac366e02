"""Answers of real controllers of Kafka 4.3.1; `python -m testkit.quorum.golden` asks them again."""

import asyncio
import json
import tempfile
from pathlib import Path

from kustos.client import ClientSettings, KafkaConnection, NodeAddress, connect
from kustos.metadata.log import METADATA_PARTITION, SnapshotId
from kustos.metadata.quorum.answers import (
    FETCH_VERSIONS,
    fetch_request,
    fetch_snapshot_request,
    read_fetch,
)
from kustos.wire import request_codec, response_codec
from kustos.wire.api_keys import ApiKey
from testkit.kafka import KafkaNode
from testkit.quorum.controllers import Quorum
from testkit.waiting import wait_until

FILE = Path(__file__).with_name("golden.json")
FETCH, SNAPSHOT = int(ApiKey.FETCH), int(ApiKey.FETCH_SNAPSHOT)


def golden() -> dict[str, tuple[int, int, bytes]]:
    """Return each answer by its name: API, version, body."""
    read = json.loads(FILE.read_text())
    return {name: (api, version, bytes.fromhex(body)) for name, (api, version, body) in read.items()}


async def fetched(
    connection: KafkaConnection,
    epoch: int,
    offset: int,
    last_epoch: int,
    cluster_id: str | None,
    version: int,
) -> bytes:
    message = fetch_request(request_codec(FETCH, version), cluster_id, epoch, offset, last_epoch, -1, 0)
    return await connection.exchange(FETCH, version, request_codec(FETCH, version).encode(message))


async def snapshotted(
    connection: KafkaConnection, epoch: int, snapshot_id: SnapshotId, position: int
) -> bytes:
    codec = request_codec(SNAPSHOT, 1)
    message = fetch_snapshot_request(codec, None, epoch, snapshot_id, position)
    return await connection.exchange(SNAPSHOT, 1, codec.encode(message))


def has_snapshot(node: KafkaNode) -> bool:
    """Return whether a controller wrote a snapshot of its own."""
    ids = [SnapshotId.of(path.name) for path in (node.log_dir / METADATA_PARTITION).glob("*.checkpoint")]
    return any(each is not None and each.end_offset > 0 for each in ids)


async def capture(quorum: Quorum) -> dict[str, tuple[int, int, str]]:
    settings = ClientSettings.from_properties(quorum.bootstrap, quorum.client_properties())
    connections = [await connect(address, settings) for address in settings.bootstrap_servers]
    found: dict[str, tuple[int, int, str]] = {}

    def keep(name: str, api: int, version: int, body: bytes) -> bytes:
        found[name] = (api, version, body.hex())
        return body

    for version in FETCH_VERSIONS:
        keep(f"fenced v{version}", FETCH, version, await fetched(connections[0], 0, 0, 0, None, version))
    told = read_fetch(
        response_codec(FETCH, 18).decode(await fetched(connections[0], 0, 0, 0, None, 18)).message
    )
    assert told.leader is not None
    leader = await connect(NodeAddress(told.leader.host, told.leader.port), settings)
    other = next(each for each in connections if each.port != told.leader.port)
    epoch = told.epoch
    keep("not leader", FETCH, 18, await fetched(other, epoch, 0, 0, None, 18))
    keep("unknown epoch", FETCH, 18, await fetched(leader, epoch + 5, 0, 0, None, 18))
    keep("wrong cluster", FETCH, 18, await fetched(leader, epoch, 0, 0, "5L6g3nShT-eMCtK--X86sw", 18))
    keep("diverging", FETCH, 18, await fetched(leader, epoch, 1_000_000, epoch, None, 18))
    keep("records", FETCH, 18, await fetched(leader, epoch, 0, 0, None, 18))
    ports = {node.controller_port: node for node in quorum.controllers}
    await asyncio.to_thread(wait_until, lambda: has_snapshot(ports[leader.port]), what="a snapshot")
    answer = read_fetch(
        response_codec(FETCH, 18).decode(await fetched(leader, epoch, 0, 0, None, 18)).message
    )
    keep("snapshot named", FETCH, 18, await fetched(leader, epoch, 0, 0, None, 18))
    snapshot_id = answer.snapshot_id
    assert snapshot_id is not None
    keep("whole snapshot", SNAPSHOT, 1, await snapshotted(leader, epoch, snapshot_id, 0))
    keep("wrong position", SNAPSHOT, 1, await snapshotted(leader, epoch, snapshot_id, 1_000_000))
    keep("no such snapshot", SNAPSHOT, 1, await snapshotted(leader, epoch, SnapshotId(3, 1), 0))
    keep("snapshot fenced", SNAPSHOT, 1, await snapshotted(leader, epoch - 1, snapshot_id, 0))
    keep("snapshot of no leader", SNAPSHOT, 1, await snapshotted(other, epoch, snapshot_id, 0))
    return found


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as scratch:
        small = {"metadata.log.max.snapshot.interval.ms": "2000", "metadata.max.idle.interval.ms": "100"}
        with Quorum(Path(scratch), broker=False, properties=small) as quorum:
            found = asyncio.run(capture(quorum))
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
