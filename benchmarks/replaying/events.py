"""Recorded events of an estate as the table `audit_events`, in Parquet.

Whatever of an event has no part in a replay is still there, as it would be: ids that do not compress, client
ids, correlation ids.
"""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from benchmarks.figures import progress
from benchmarks.replaying.estate import SEED, Estate, estate
from kustos.pipeline.schemas import AUDIT_EVENTS_SCHEMA, QUESTION_COLUMNS
from kustos.pipeline.tables.rollup.days import DayFiles

CACHE: Final = Path(__file__).parents[2] / ".cache" / "pipeline-benchmark"
WARM_EVENTS: Final = 100_000
"""Enough to have Spark compile what it will run."""

ROWS_OF_FILE: Final = 1_250_000
DAYS: Final = 7
START_MS: Final = 1_795_219_200_000
"""2026-11-21, midnight UTC."""
DAY_MS: Final = 86_400_000
LISTING_SHARE: Final = 0.05
ZIPF_EXPONENT: Final = 0.95
"""Near 1, as measured of topics and users; a little flatter, so that most of the pool is met."""

POOL_OF_EVENTS: Final = 0.1
"""Distinct questions for each event: 20 million events meet about 1.5 million of them."""
POOL_MAX: Final = 2_000_000
"""Beyond 20 million events nothing new is asked: an estate is so large and no larger."""

FORMAT: Final = 6
"""Of what is written; another one is written again."""

_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES: Final = (8, 13, 18, 23)
_DIGITS: Final = np.array([place for place in range(36) if place not in _DASHES])


def folder_of(event_count: int, acl_count: int) -> Path:
    """Return where so many events are written."""
    return CACHE / f"events-{event_count}-{acl_count}"


def files_by_day(folder: Path) -> list[DayFiles]:
    """Return the files of each day."""
    days: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("day-*.parquet")):
        days.setdefault(path.name.split("-")[1], []).append(path)
    first = datetime.fromtimestamp(START_MS / 1000, UTC).date()
    return [
        DayFiles((first + timedelta(days=number)).isoformat(), tuple(files))
        for number, files in enumerate(days.values())
    ]


def recorded(event_count: int, acl_count: int) -> tuple[Path, Estate]:
    """Return the folder of so many recorded events and their estate; what was written before is kept."""
    made = estate(acl_count, max(1_000, min(POOL_MAX, int(event_count * POOL_OF_EVENTS))))
    folder = folder_of(event_count, acl_count)
    marker = folder / "_MADE"
    said = json.dumps({"format": FORMAT, "seed": SEED, "days": DAYS})
    if not marker.exists() or marker.read_text(encoding="ascii") != said:
        progress(f"writing {event_count:,} events of {acl_count:,} ACLs into {folder.name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write(made, event_count, folder)
        marker.write_text(said, encoding="ascii")
    return folder, made


def write(made: Estate, event_count: int, folder: Path, exponent: float = ZIPF_EXPONENT) -> None:
    """Write the events in some files a day, as a cluster that rolls them would.

    `exponent`: that of Zipf's law; with 0 each question is as frequent as any other.
    """
    count = made.questions.num_rows
    weights = np.cumsum(np.arange(1, count + 1) ** -exponent)
    texts = {name: made.questions.column(name).combine_chunks() for name in QUESTION_COLUMNS}
    principals = texts.pop("principal")
    names = pc.replace_substring(principals.dictionary, "User:", "", max_replacements=1)
    texts["principal_name"] = pa.DictionaryArray.from_arrays(principals.indices, names)
    schema = to_arrow_schema(AUDIT_EVENTS_SCHEMA, timezone="UTC")
    for day in range(DAYS):
        day_size = event_count * (day + 1) // DAYS - event_count * day // DAYS
        for number, first in enumerate(range(0, day_size, ROWS_OF_FILE)):
            rng = np.random.default_rng([SEED, day, number])
            size = min(ROWS_OF_FILE, day_size - first)
            asked = np.searchsorted(weights, rng.random(size) * weights[-1])
            begin, end = (DAY_MS * rows // day_size for rows in (first, first + size))
            times = START_MS + day * DAY_MS + np.sort(rng.integers(begin, end, size))
            table = _events(made, texts, pa.array(asked), times, rng, schema)
            parquet.write_table(table, folder / f"day-{day}-{number:05d}.parquet", compression="snappy")


def _events(
    made: Estate, texts: dict[str, Any], asked: Any, times: Any, rng: np.random.Generator, schema: Any
) -> Any:
    size = len(times)
    columns = {name: column.take(asked) for name, column in texts.items()}
    listed = pa.array((rng.random(size) < LISTING_SHARE).astype(np.int8))
    columns |= {
        "event_id": _event_ids(rng, size),
        "time_ms": pa.array(times),
        "time": pa.array(times * 1000).cast(pa.timestamp("us", tz="UTC")),
        "decision": made.decisions.take(asked),
        "rule": made.rules.take(asked),
        "access": pa.DictionaryArray.from_arrays(listed, pa.array(["ACCESS", "LISTING"])),
        "correlation_id": pa.array(rng.integers(0, 1 << 20, size, dtype=np.int32)),
        "reference_count": pa.array(rng.integers(1, 4, size, dtype=np.int32)),
    }
    constants = {
        "schema_version": 1,
        "node_id": 1,
        "listener_name": "CLIENT",
        "security_protocol": "SASL_SSL",
        "principal_type": "User",
        "token_authenticated": False,
        "api_key": 1,
        "api_name": "Fetch",
        "api_version": 17,
        "client_id": "consumer-1",
        "log_if_allowed": True,
        "log_if_denied": True,
        "acl_offset": 1,
        "source_format": "kustos",
        "source_file": "audit.jsonl",
    }
    arrays = []
    for field in schema:
        if field.name in columns:
            arrays.append(columns[field.name])
        else:
            arrays.append(_constant(constants.get(field.name), size, field.type))
    return pa.table(dict(zip(schema.names, arrays, strict=True)))


def _constant(value: object, size: int, kind: Any) -> Any:
    if value is None:
        return pa.nulls(size, kind)
    if pa.types.is_string(kind):
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int8)), pa.array([value], kind))
    return pa.repeat(pa.scalar(value, kind), size)


def _event_ids(rng: np.random.Generator, size: int) -> Any:
    """Return random UUIDs of version 4 as texts."""
    raw = rng.integers(0, 256, (size, 16), dtype=np.uint8)
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    letters: npt.NDArray[np.uint8] = np.full((size, 36), ord("-"), np.uint8)
    letters[:, _DIGITS[::2]] = _HEX[raw >> 4]
    letters[:, _DIGITS[1::2]] = _HEX[raw & 15]
    offsets = np.arange(size + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(size, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))
