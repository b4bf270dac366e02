"""Writers of one table who commit at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from threading import Barrier
from typing import Final

import pyarrow as pa

from kustos.pipeline.places import Place
from kustos.pipeline.tables import Tables, TablesInUseError, delta
from kustos.pipeline.tables.runs import RUN
from kustos.pipeline.tables.transaction import Transaction, Write

WRITERS: Final = 6
ROUNDS: Final = 4
SCHEMA: Final = pa.schema([("text", pa.string()), ("day", pa.date32())])


def one_of_writers_wins(place: Place) -> None:
    """Assert that of runs at once at most one is committed, whole, and that the others say so."""

    def attempt(writer: int, start: Barrier) -> bool:
        try:
            change = Transaction(place)
            name = delta.new_name(change.mark, "2026-11-20")
            rows = pa.table({"text": [f"of {writer} in {change.state.number}"]})
            file = delta.write_file(change.place("audit_events"), name, rows, "2026-11-20")
        except BaseException:
            start.abort()  # else the others wait for ever
            raise
        change.add("audit_events", [file])
        start.wait()
        write = Write(table="audit_events", schema=SCHEMA)
        try:
            change.commit(f"run-{change.state.number}-{writer}", RUN, [write])
        except TablesInUseError:
            return False
        finally:
            change.end()
        return True

    won = 0
    with ThreadPoolExecutor(WRITERS) as threads:
        for _ in range(ROUNDS):
            outcomes = list(threads.map(attempt, range(WRITERS), repeat(Barrier(WRITERS))))
            assert sum(outcomes) <= 1
            won += sum(outcomes)
            state = Tables(place).state()
            assert len(state.runs) == state.number == won
            rows = sum(file.rows for file in Tables(place).snapshot("audit_events"))
            assert rows == won, "a loser's rows are not seen"
    assert attempt(0, Barrier(1)), "and alone a run is not refused"
