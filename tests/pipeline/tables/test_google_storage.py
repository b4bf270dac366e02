"""What is Google's own of tables and logs in its store: accounts, and files that other programs put there.

The tests of `test_object_store.py` run there, too.
"""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.places import StorePath, sink_of
from kustos.pipeline.run import find_new_files, run_pipeline
from kustos.pipeline.tables import Tables, TablesError
from testkit.google_storage import GoogleStorage, write_account
from testkit.ports import LOOPBACK
from tests.pipeline.events import event_line, kafka_line
from tests.pipeline.tables.test_runs import contents

ACCOUNT = "GOOGLE_SERVICE_ACCOUNT"


@pytest.fixture
def store(google_store: GoogleStorage) -> GoogleStorage:
    return google_store


def put(place: StorePath, content: bytes) -> None:
    """Write an object; delta-rs takes bytes of Python by way of a larger buffer alone."""
    with sink_of(place) as sink, pa.BufferedOutputStream(sink, len(content) + 1) as stream:
        stream.write(content)


def test_logs_there_are_taken_in_as_those_on_a_disk(
    near: SparkSession, store: GoogleStorage, tmp_path: Path
) -> None:
    here, there, folder = Tables(tmp_path / "here"), Tables(tmp_path / "there"), tmp_path / "audit"
    logs = StorePath(store.address("logs"))
    events = "".join(f"{event_line(number)}\n" for number in range(40)).encode()
    more = f"{kafka_line()}\n{kafka_line()}\njunk\n".encode()
    for files in ({"plain": events, "packed": gzip.compress(events)}, {"broker-1/server.log": more}):
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
            put(logs / name, content)
        run_pipeline(near, tables=here, audit=folder)
        assert run_pipeline(near, tables=there, audit=logs).new_files == len(files)
        assert contents(near, here) == contents(near, there)
    assert not find_new_files(logs, there).new


def test_errors_tell_the_place_and_the_reason_and_no_key(
    store: GoogleStorage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tables, other = Tables.at(store.address("errors")), tmp_path / "account.json"
    assert tables.state().number == 0
    write_account(other, store.url)
    said = ""
    for file, reason in (
        (other, "permission denied"),
        (tmp_path / "none.json", "no credentials, set those of the store"),
        (None, "no credentials, set those of the store"),
    ):
        with monkeypatch.context() as patch:
            patch.delenv(ACCOUNT)
            if file is not None:
                patch.setenv(ACCOUNT, str(file))
            for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
                patch.setenv(name, f"{LOOPBACK}:9")  # the machine has no account of its own
            with pytest.raises(TablesError, match=f"errors/runs`: {reason}") as caught:
                tables.state()
        said += f"{caught.value!r} {caught.value.__cause__!r}"
    with pytest.raises(TablesError, match="no-such-bucket/errors/runs`: the store answers nosuchbucket"):
        Tables.at("gs://no-such-bucket/errors").state()
    said += store.log.read_text() + repr(store)
    for file in (other, store.account):
        account = json.loads(file.read_text())
        key = account["private_key"].splitlines()
        assert not [text for text in (*key, account["client_email"], "Bearer", "<") if text in said]
