"""Runs the file sinks where files cannot grow, as on a full disk; prints the outcome.

Runs in a process of its own: the limit applies to the whole process.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path

from kustos.gateway.audit.errors import AuditSinkError
from kustos.gateway.audit.json_files import JsonFilesSink
from kustos.gateway.audit.log4j import KafkaLinesSink
from testkit.gateway.audit import lines_of, request

ROOM_BYTES = 4000
REQUESTS = [request(number, f"topic-{number}") for number in range(30)]


def limit_files(size_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


async def main(directory: Path) -> None:
    json_sink = JsonFilesSink(directory / "json", max_bytes=10**9, max_files=10)
    lines_sink = KafkaLinesSink(directory / "authorizer.log", "TRACE")
    said = []
    for sink in (json_sink, lines_sink):
        await sink.open()
        await sink.write(lines_of(*REQUESTS[:1]))
        limit_files(ROOM_BYTES)
        try:
            await sink.write(lines_of(*REQUESTS[1:]))
        except AuditSinkError as error:
            said.append(str(error))
        limit_files(resource.RLIM_INFINITY)
        await sink.write(lines_of(*REQUESTS[1:]))
        await sink.close()
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
