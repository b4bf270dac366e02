"""Reads what `kafka-dump-log --cluster-metadata-decoder` prints."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

BATCH: Final = re.compile(r"baseOffset: (\d+) .* partitionLeaderEpoch: (\d+) ")
RECORD: Final = re.compile(
    r"\| offset: (\d+) CreateTime: (\d+) keySize: -?\d+ valueSize: (\d+) .*?headerKeys: \[\] "
    r"(?:payload: )?(?:(\w+):? )?(\{.*\})?"
)


def read_dump(text: str) -> Iterator[tuple[int, int, int, str, int | None, dict[str, Any]]]:
    """Yield offset, epoch, size, kind, version and fields of what `DumpLogSegments` printed."""
    epoch = -1
    for line in text.splitlines():
        if batch := BATCH.match(line):
            epoch = int(batch[2])
        elif record := RECORD.match(line):
            assert record[5], line
            said = json.loads(record[5])
            offset, size = int(record[1]), int(record[3])
            if record[4]:
                said.pop("version")
                yield offset, epoch, size, record[4], None, said
            else:
                yield offset, epoch, size, said["type"], said["version"], said["data"]
