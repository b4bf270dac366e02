"""A real HDFS on the loopback: a name node and a data node, to which clients without a JVM speak."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from testkit.jars import JarSet
from testkit.ports import LOOPBACK, free_port, is_listening
from testkit.processes import Server, spawn
from testkit.waiting import wait_until

HADOOP: Final = JarSet(name="hadoop-3.4.2")
"""HDFS with all that its nodes need."""

JVM: Final = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m")
NAME_NODE: Final = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE: Final = "org.apache.hadoop.hdfs.server.datanode.DataNode"
START_S: Final = 120.0
READY: Final = "Successfully sent block report"

LOGGING: Final = """log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d %p %c{1} %m%n
"""


@dataclass(frozen=True, slots=True)
class Hdfs:
    """A running file system, whose superuser is the user of the tests."""

    port: int
    java: tuple[str, ...]

    def put(self, path: str, content: bytes) -> None:
        """Write a file, with the folders that it lies in, by Hadoop's own shell."""
        shell = [*self.java, "org.apache.hadoop.fs.FsShell"]
        folder = f"/{path}".rpartition("/")[0] or "/"
        subprocess.run([*shell, "-mkdir", "-p", folder], capture_output=True, check=True)
        command = [*shell, "-put", "-f", "-", f"/{path}"]
        subprocess.run(command, input=content, capture_output=True, check=True)

    def address(self, path: str, host: str = LOOPBACK) -> str:
        """Return the address of a path."""
        return f"hdfs://{host}:{self.port}/{path}"


@contextmanager
def hdfs(folder: Path) -> Iterator[Hdfs]:
    """Yield a file system that keeps its blocks below `folder`; it is gone at the end."""
    configuration = folder / "conf"
    java = (*JVM, "-cp", f"{configuration}:{HADOOP.classpath}")
    found = Hdfs(free_port(), java)
    for pages in ("hdfs", "datanode"):  # of the web pages, which the jars lack and the nodes look for
        (configuration / "webapps" / pages).mkdir(parents=True)
    addresses = {
        f"dfs.{name}": f"{LOOPBACK}:{free_port()}"
        for name in (
            "namenode.http-address",
            "datanode.address",
            "datanode.http.address",
            "datanode.ipc.address",
        )
    }
    _write(
        configuration / "hdfs-site.xml",
        {
            "dfs.namenode.name.dir": str(folder / "name"),
            "dfs.datanode.data.dir": str(folder / "data"),
            "dfs.replication": "1",
            **addresses,
        },
    )
    _write(
        configuration / "core-site.xml",
        {"fs.defaultFS": f"hdfs://{LOOPBACK}:{found.port}", "hadoop.tmp.dir": str(folder / "tmp")},
    )
    (configuration / "log4j.properties").write_text(LOGGING)
    formatted = spawn([*java, NAME_NODE, "-format", "-nonInteractive"])
    assert formatted.wait(START_S) == 0, "the name node takes its folder"
    with ExitStack() as servers:
        for name, node in (("name", NAME_NODE), ("data", DATA_NODE)):
            server = Server(f"{name} node", [*java, node], folder / f"{name}.log")
            servers.callback(server.kill)
            if name == "name":
                server.wait_ready(lambda: is_listening(found.port), timeout_s=START_S)
        log = folder / "data.log"
        wait_until(lambda: READY in log.read_text(), timeout_s=START_S, what="the data node is known")
        yield found


def _write(file: Path, properties: Mapping[str, str]) -> None:
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    ]
    file.write_text(f"<configuration>{''.join(lines)}</configuration>")
