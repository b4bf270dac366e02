"""The steps on the page about backups restore a metadata directory that was damaged."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from testkit.paths import ROOT

PAGE = (ROOT / "docs" / "how-to" / "back-up.md").read_text()
ACLS = """\
version: 1
acls:
  - {resource_type: TOPIC, resource_name: orders, pattern_type: LITERAL, principal: "User:bob", host: "*", operation: READ, permission_type: ALLOW}
"""  # noqa: E501
SETTINGS = """\
node.id=1
metadata.log.dir=/var/lib/kustos/metadata
listeners=SASL_PLAINTEXT://127.0.0.1:9192
sasl.enabled.mechanisms=SCRAM-SHA-256
kustos.upstream.bootstrap.servers=127.0.0.1:9092
"""


class Machine:
    """A folder that stands for the root of the page's machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("var/lib/kustos", "srv/backup", "etc/kustos"):
            (root / folder).mkdir(parents=True)
        (root / "etc/kustos/kustos.properties").write_text(self.moved(SETTINGS))
        (root / "acls.yaml").write_text(ACLS)
        self.metadata = root / "var/lib/kustos/metadata"

    def moved(self, text: str) -> str:
        return re.sub(r"(?<![\w.])/(?=(?:var|srv|etc)/)", f"{self.root}/", text)

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run the lines of a page; a node is not started."""
        lines = [line for line in script.splitlines() if not line.startswith("kustos serve")]
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.run(
            ["sh", "-e", "-c", self.moved("\n".join(lines))],
            cwd=self.root,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def done(self, script: str) -> str:
        result = self.run(script)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def acls(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = json.loads(
            self.done("kustos acls list --acls /var/lib/kustos/metadata -o json")
        )["acls"]
        return found

    def break_snapshot(self) -> None:
        """Change a byte of the only snapshot, and remove the directory that was broken before."""
        shutil.rmtree(self.metadata.with_name("metadata.broken"), ignore_errors=True)
        (snapshot,) = self.metadata.glob("__cluster_metadata-0/*.checkpoint")
        content = bytearray(snapshot.read_bytes())
        content[70] ^= 0xFF
        snapshot.write_bytes(content)


def blocks(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def test_a_damaged_directory_is_restored_from_a_copy_and_from_an_export(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.done("kustos storage format -t random -c /etc/kustos/kustos.properties --acls acls.yaml")
    expected = machine.acls()
    assert [acl["principal"] for acl in expected] == ["User:bob"]
    export, copy = blocks("Back up the metadata")
    machine.done(export)
    machine.done(copy)
    from_copy, from_export = blocks("Restore a metadata directory")
    for steps in (from_copy, from_export):
        machine.break_snapshot()
        broken = machine.run("kustos metadata verify /var/lib/kustos/metadata")
        assert (broken.returncode, "damaged" in broken.stdout) == (1, True)
        machine.done(steps)
        assert machine.acls() == expected
