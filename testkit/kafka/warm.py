"""Creates the class data archives (JEP 350) that shorten every later start of a JVM."""

import subprocess
import sys
import tempfile
from pathlib import Path

from testkit.kafka.java import archive
from testkit.kafka.listeners import SASL_PLAINTEXT, SCRAM_MODULE
from testkit.kafka.node import STANDARD_AUTHORIZER, KafkaNode, NodeSettings
from testkit.kafka.tools import KafkaTools
from testkit.processes import ChildError
from testkit.spark_archive import make_spark_archive, spark_archive


def main() -> int:
    """Create the missing archives.

    Without them a JVM takes a few seconds longer to start. So if the machine is too slow or busy to create
    them now, this prints a warning, and the next run tries again.
    """
    kafka = [path for path in (archive("broker"), archive("tools")) if not path.exists()]
    spark = [path for path in (spark_archive(),) if not path.exists()]
    for missing, make in ((kafka, make_archives), (spark, make_spark_archive)):
        if not missing:
            continue
        try:
            make()
        except (ChildError, OSError, subprocess.SubprocessError) as error:
            for path in missing:
                path.unlink(missing_ok=True)
            reason = str(error).partition("\n")[0]
            sys.stderr.write(
                f"setup: warning: JVMs will start slowly, no class data archive was made: {reason}\n"
            )
    return 0


def make_archives() -> None:
    """Start a broker and run a tool once; each writes its archive at its exit. Raise `ChildError`.

    Together they do what most tests need: log in, authorize, make a topic, write, read and commit. The tool
    is the one that administers, produces and consumes in one JVM.
    """
    user, password = "warm", "warm-secret"
    settings = NodeSettings(
        listeners=(SASL_PLAINTEXT,),
        users={user: password},
        authorizer=STANDARD_AUTHORIZER,
        super_users=(f"User:{user}",),
    )
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM_MODULE} required username="{user}" password="{password}";',
    }
    records = ["--num-records", "20", "--record-size", "10", "--producer-acks", "all"]
    with tempfile.TemporaryDirectory(prefix="kafka-warm-") as scratch:
        node = KafkaNode(Path(scratch), settings)
        try:
            node.launch(archiving=True)
            node.wait_ready()
            where = ["--bootstrap-server", node.bootstrap, "--topic", "warm"]
            KafkaTools().run(
                "EndToEndLatency", *where, *records, client_properties=login, archiving=True
            ).require()
            node.stop()
        finally:
            node.kill()


if __name__ == "__main__":
    sys.exit(main())
