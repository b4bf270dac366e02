"""What a program that decides loads: the packages that decide, and Python's own modules."""

import json
import subprocess
import sys
from pathlib import Path

import kustos
from testkit.paths import ROOT

HEAVY = {"asyncio", "concurrent", "email", "http", "logging", "multiprocessing", "socket", "ssl"}
"""Of Python's own: what belongs to servers, clients and commands."""

REPORT = """
import json, sys
before = set(sys.modules)
{program}
tops = {{name.partition(".")[0] for name in set(sys.modules) - before}}
packages = sorted({{name.split(".")[1] for name in sys.modules if name.startswith("kustos.")}})
foreign = sorted(tops - sys.stdlib_module_names - {{"kustos"}})
print(json.dumps({{"packages": packages, "foreign": foreign, "own": sorted(tops & sys.stdlib_module_names)}}))
"""


def loaded_by(program: str) -> dict[str, list[str]]:
    """Return the packages of kustos, those of other projects, and Python's modules that a program loads."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT.format(program=program)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_front_door_opens_on_every_name_it_lists() -> None:
    names = [name for name in kustos.__all__ if name != "__version__"]
    assert [getattr(kustos, name).__name__ for name in names] == names


def test_import_kustos_loads_no_package() -> None:
    assert loaded_by("import kustos")["packages"] == []


def test_a_program_that_decides_loads_no_package_of_others_and_no_server_client_or_command() -> None:
    for program in (
        "from kustos import StandardAuthorizer; StandardAuthorizer()",
        "import runpy; runpy.run_path('examples/decide.py', run_name='__main__')",
    ):
        loaded = loaded_by(program)
        assert loaded["foreign"] == []
        assert loaded["packages"] == ["acl", "authorizer", "runtime"]
        assert set(loaded["own"]) & HEAVY == set()


def test_a_command_on_a_file_of_acls_loads_no_codecs_and_no_client(tmp_path: Path) -> None:
    acls = tmp_path / "acls.csv"
    command = f"from kustos.cli.run import run; run(['acls', 'convert', {str(acls)!r}, '--to', 'json'])"
    acls.write_text(
        "resource_type,resource_name,pattern_type,principal,host,operation,permission_type\n"
        "TOPIC,t,LITERAL,User:alice,*,READ,ALLOW\n"
    )
    assert {"acl", "cli"} <= set(loaded_by(command)["packages"]) <= {"acl", "cli", "metadata", "runtime"}
