"""One Spark session for the whole run, since it costs seconds to start: classic, or of a Connect server.

`KUSTOS_TEST_SPARK=connect` asks for the server; `backends` says what does not run there.
"""

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.pipeline.session import open_session
from testkit import spark_daemon
from testkit.google_storage import GoogleStorage, google_storage
from testkit.object_store import ObjectStore, Store, object_store
from testkit.paths import ROOT
from testkit.spark_connect import connect_server
from testkit.spark_jars import SPARK_DELTA, spark_jars
from testkit.spark_quick import (
    INTERPRETED,
    PLANNED_ONCE,
    SETTINGS,
    TINY,
    USERS_PLANS,
    remember_java_names,
)
from tests.pipeline.backends import IS_CONNECT, left_out, runs_here

FOLDER = Path(__file__).parent

# rows of Spark have the local time of the driver, and tests write in UTC what they expect
os.environ["TZ"] = "UTC"
time.tzset()


def at_start() -> dict[str, str]:
    """Return what a Spark is started with; it takes no jars later."""
    return {
        **SETTINGS,
        "spark.jars": spark_jars(SPARK_DELTA),
        "spark.python.daemon.module": spark_daemon.MODULE,
    }


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are on a network file system without a lock daemon."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)


@pytest.fixture(scope="session")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Connect server."""
    with connect_server(tmp_path_factory.mktemp("connect"), at_start()) as url:
        yield url


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if IS_CONNECT:
        lent = open_session(
            "kustos tests",
            remote=request.getfixturevalue("spark_server"),
            settings=TINY | INTERPRETED | PLANNED_ONCE,
        )
    else:
        lent = open_session("kustos tests", settings=at_start() | INTERPRETED | PLANNED_ONCE)
    with lent as session:
        if not IS_CONNECT:
            remember_java_names(session)
        yield session


@pytest.fixture(scope="module")
def users_plans(spark: SparkSession) -> Iterator[None]:
    """Let Spark plan and run for the tests of a file as it does for users; a file of each folder does."""
    before = {name: spark.conf.get(name) for name in USERS_PLANS}
    for name, value in USERS_PLANS.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        assert old is not None
        spark.conf.set(name, old)


@contextmanager
def known(store: Store) -> Iterator[None]:
    """Let this process find a store in its environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("s3")) as server, known(server):
        yield server


@pytest.fixture(scope="session")
def google_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleStorage]:
    with google_storage(tmp_path_factory.mktemp("gs")) as server, known(server):
        yield server


@pytest.fixture
def near(spark: SparkSession, store: Store) -> Iterator[SparkSession]:
    """Return the session with workers that were started in the store's environment."""
    environment = spark.sparkContext.environment
    environment.update(store.environment)
    yield spark
    for name in store.environment:
        del environment[name]


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel under a name that Spark puts on the path of its workers: it knows `.zip`, not `.whl`."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("kustos-*.whl")
    return wheel.rename(folder / "kustos.zip")


def pytest_report_header() -> list[str]:
    if not IS_CONNECT:
        return []
    return [
        "spark: over Connect, tests that use the session",
        *(f"not {name}: {why}" for name, why in left_out().items()),
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of this folder that say nothing about the session of this run."""
    left = {item for item in items if item.path.is_relative_to(FOLDER) and not runs_here(item)}
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]
