"""The jars that Spark needs to read a topic: it ships without them."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from kustos.pipeline.errors import JarsError
from kustos.runtime import reason_of

SPARK_VERSION: Final = "4.2.0"
SCALA_VERSION: Final = "2.13"

KAFKA_COORDINATES: Final = (
    f"org.apache.spark:spark-sql-kafka-0-10_{SCALA_VERSION}:{SPARK_VERSION}",
    f"org.apache.spark:spark-token-provider-kafka-0-10_{SCALA_VERSION}:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
"""Maven coordinates of the connector and what it needs beyond Spark's own jars.

The token provider is 4.0.0: the common repositories lack 4.2.0, whose classes are the same.
"""

MAVEN_TIMEOUT_S: Final = 600
"""The four jars are 10 MB; a longer download means that there is no network."""

_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def download_jars(folder: Path, progress: Callable[[str], None] = lambda _text: None) -> tuple[Path, ...]:
    """Download the connector's jars into a folder with Maven; return them as `spark.jars` takes them.

    Raises `JarsError` if Maven is not installed or fails.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsError("`mvn` is not installed; download these otherwise: " + ", ".join(KAFKA_COORDINATES))
    folder = folder.resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JarsError(f"cannot create `{folder}`: {reason_of(error)}") from error
    progress("downloading the Kafka connector with Maven")
    with tempfile.TemporaryDirectory(prefix="kustos-jars-") as scratch:
        project = Path(scratch, "pom.xml")
        project.write_text(_project(), encoding="utf-8")
        command = [maven, "-q", "-B", "-f", str(project), _PLUGIN, f"-DoutputDirectory={folder}"]
        try:
            done = subprocess.run(  # noqa: S603  # Maven, with arguments of our own making
                command,
                capture_output=True,
                text=True,
                timeout=MAVEN_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JarsError(f"maven did not download the jars within {MAVEN_TIMEOUT_S} s") from error
    jars = tuple(folder / _file_name(coordinate) for coordinate in KAFKA_COORDINATES)
    missing = [jar.name for jar in jars if not jar.is_file()]
    if done.returncode or missing:
        output = (done.stdout + done.stderr).strip()[-500:]
        raise JarsError(f"maven did not download {', '.join(missing) or 'all jars'}: {output}")
    return jars


def _file_name(coordinate: str) -> str:
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def _project() -> str:
    """Return a Maven project with exactly these jars, which include all dependencies that Spark lacks."""
    dependencies = ""
    for coordinate in KAFKA_COORDINATES:
        group, artifact, version = (escape(part) for part in coordinate.split(":"))
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version><exclusions><exclusion><groupId>*</groupId>"
            "<artifactId>*</artifactId></exclusion></exclusions></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>kustos</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
    )
