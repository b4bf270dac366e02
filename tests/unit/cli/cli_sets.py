"""Running commands in this process on files of ACLs."""

import json
from typing import Any

import pytest

from kustos.acl import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from kustos.cli.run import run


def acl(
    name: str,
    *,
    who: str = "User:alice",
    host: str = "*",
    operation: AclOperation = AclOperation.READ,
    permission: AclPermissionType = AclPermissionType.ALLOW,
    pattern_type: PatternType = PatternType.LITERAL,
    kind: ResourceType = ResourceType.TOPIC,
) -> AclBinding:
    entry = AccessControlEntry(who, host, operation, permission)
    return AclBinding(ResourcePattern(kind, name, pattern_type), entry)


class Said:
    """`kustos` with these arguments at a terminal of 80 columns: the exit code, what it said, and where."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "80")
            patch.setattr("sys.stdout.isatty", lambda: True, raising=False)
            self._capsys.readouterr()
            exit_code = run(list(arguments))
        said = self._capsys.readouterr()
        is_for_programs = {"--to", "--sarif"} & {*arguments}
        assert is_for_programs or all(len(line) <= 80 for line in said.out.splitlines()), said.out
        return exit_code, said.out, said.err

    def piped(self, *arguments: str) -> tuple[int, str, str]:
        """The same where standard output is not a terminal."""
        self._capsys.readouterr()
        exit_code = run(list(arguments))
        said = self._capsys.readouterr()
        return exit_code, said.out, said.err

    def document(self, *arguments: str) -> tuple[int, Any]:
        self._capsys.readouterr()
        exit_code = run([*arguments, "-o", "json"])
        said = self._capsys.readouterr()
        return exit_code, json.loads(said.out or said.err)
