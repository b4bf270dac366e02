"""The rights that a page of the docs names, given by running the page's own commands."""

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kustos.acl import AclBinding
from kustos.acl.forms import AclForm, read_acls
from testkit.guarded.cluster import GuardedCluster
from testkit.kafka.tools import write_properties
from testkit.paths import ROOT

_SHELL = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMANDS_MIN = 4
"""Fewer in a section mean that it was not found."""


def grant(scene: GuardedCluster, page: Path, section: str, directory: Path) -> list[AclBinding]:
    """Run each command of a section as the administrator; return the ACLs that are in force then."""
    file = directory / "admin.properties"
    write_properties(file, scene.java("admin"))
    text = (ROOT / page).read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = "".join(_SHELL.findall(text)).replace("\\\n", " ").splitlines()
    assert len(lines) >= COMMANDS_MIN, text
    cluster = ["--bootstrap-server", scene.bootstrap, "--command-config", str(file)]
    for line in lines:
        command = shlex.split(line)
        at = command.index("$KAFKA")
        assert command[:3] == ["kustos", "acls", "add"], line
        _kustos([*command[1:at], *cluster, *command[at + 1 :]])
    listed = _kustos(["acls", "list", *cluster, "-o", "json"])
    return [each.binding for each in read_acls(listed, AclForm.JSON, "the ACLs in force")]


def _kustos(arguments: Sequence[str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kustos", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
