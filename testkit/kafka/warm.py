"""Brings all jars, and makes the class data archives (JEP 350) that shorten every later JVM start.

Later two runs of tests work side by side, and two Mavens must not write to one local repository.
"""

import sys
import tempfile
from pathlib import Path

from testkit.jars import JarSet
from testkit.kafka.java import archive
from testkit.kafka.node import KafkaNode
from testkit.kafka.tools import KafkaTools
from testkit.paths import MAVEN_PROJECTS


def main() -> int:
    """Start a broker and use a tool once, each leaving its archive behind; nothing where all is there."""
    for project in sorted(MAVEN_PROJECTS.glob("*.xml")):
        JarSet(name=project.stem).resolve()
    if archive("broker").exists() and archive("tools").exists():
        return 0
    with tempfile.TemporaryDirectory(prefix="kafka-warm-") as scratch:
        node = KafkaNode(Path(scratch))
        try:
            node.launch(archiving=True)
            node.wait_ready()
            topic = ["--create", "--topic", "warm", "--partitions", "1", "--replication-factor", "1"]
            tools = KafkaTools()
            tools.run("TopicCommand", "--bootstrap-server", node.bootstrap, *topic, archiving=True).require()
            node.stop()
        finally:
            node.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
