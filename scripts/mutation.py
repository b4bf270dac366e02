"""Mutates the authorizer and its values one line at a time and runs the tests: `make mutation`.

mutmut makes the mutants. Each target, a group of modules, is copied with its tests, which need no Java:
Kafka's answers are recorded. A seed draws the same mutants of each module again. `mutation_equivalents.toml`
lists mutants without an observable effect, with the reason.
"""

import argparse
import math
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
WORK: Final = ROOT / ".cache" / "mutation"
EQUIVALENTS: Final = Path(__file__).with_name("mutation_equivalents.toml")
MUTMUT: Final = Path(sys.executable).with_name("mutmut")
COPIED: Final = ("src", "tests", "testkit", "oracle", "benchmarks")
NONE: Final = "no.such.fault*"
RESULT: Final = re.compile(r"^\s+(?P<name>\S+): (?P<status>[a-z ]+)$", re.MULTILINE)
METHOD: Final = "\u01c1"
"""What mutmut puts between the names of a class and a method."""
KILLED: Final = {"killed", "timeout", "suspicious", "segfault"}
SAMPLE: Final = 14
SCORE_MIN: Final = 85

VALUES: Final = (
    "tests/property/test_audit_json_lines.py",
    "tests/property/test_authorizer_theorems.py",
    "tests/unit/authorizer/test_audit.py",
    "tests/unit/authorizer/test_behaviours_by_type.py",
    "tests/unit/authorizer/test_behaviours_decisions.py",
    "tests/unit/acl/test_behaviours_values.py",
    "tests/unit/acl/test_hosts.py",
    "tests/unit/authorizer/test_standard_authorizer.py",
    "tests/differential/test_golden_worlds.py",
)

MIGRATE: Final = ("plan", "scram_text", "zookeeper_settings", "zookeeper_tree")
"""Modules without IO; tests of the others use real systems, which are too slow for each mutant."""

METADATA: Final = (
    "acl_files",
    "bad_directories",
    "bulk_acls",
    "config_image",
    "control_[!c]*",
    "control_configs",
    "delegation_token_image",
    "format",
    "golden_records",
    "layout",
    "loader",
    "log_*",
    "record_*",
    "replay",
    "requests",
    "segments",
    "snapshot*",
    "store_*",
    "torn_tails",
)

METADATA_TOOLS: Final = (
    "dump",
    "history",
    "inspection_edges",
    "metadata_shell",
    "portable",
    "timeline*",
    "tool_words",
    "tools_on_a_long_log",
    "verification",
    "verification_of_epochs",
)


@dataclass(frozen=True, slots=True)
class Target:
    """The mutated modules and the tests that must fail."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    spared: tuple[str, ...] = ()


TARGETS: Final = {
    "acl": Target(
        ("src/kustos/acl/*",),
        (*VALUES, "tests/unit/acl/test_*.py", "tests/unit/metadata/test_control_acls.py"),
        ("src/kustos/acl/forms/*",),
    ),
    "forms": Target(
        ("src/kustos/acl/forms/*",),
        ("tests/unit/acl/test_form*.py", "tests/property/test_acl_form_theorems.py"),
    ),
    "authorizer": Target(
        ("src/kustos/authorizer/*",),
        (
            *VALUES,
            "tests/unit/authorizer/test_*.py",
            "tests/unit/gateway/test_authorizer_publisher.py",
        ),
    ),
    "bulk": Target(
        ("src/kustos/pipeline/bulk/*",),
        ("tests/property/test_bulk_theorems.py", "tests/unit/pipeline/test_bulk.py"),
    ),
    "metadata": Target(
        (
            "src/kustos/metadata/*.py",
            "src/kustos/metadata/directory/*",
            "src/kustos/metadata/store/*",
            "src/kustos/metadata/control/*",
            "src/kustos/metadata/image/*",
            "src/kustos/metadata/log/*",
            "src/kustos/metadata/records/*",
        ),
        (
            "tests/property/test_bulk_acl_theorems.py",
            "tests/property/test_delegation_token_theorems.py",
            "tests/property/test_metadata_theorems.py",
            "tests/property/test_retention_theorems.py",
            "tests/unit/metadata/test_behaviours_metadata.py",
            *(f"tests/unit/metadata/test_{name}.py" for name in METADATA),
        ),
        (
            "src/kustos/metadata/control/copies.py",
            "src/kustos/metadata/inspection/*",
            "src/kustos/metadata/portable/*",
            "src/kustos/metadata/quorum/*",
        ),
    ),
    "metadata-tools": Target(
        ("src/kustos/metadata/inspection/*", "src/kustos/metadata/portable/*"),
        tuple(f"tests/unit/metadata/test_{name}.py" for name in METADATA_TOOLS),
    ),
    "quorum": Target(
        (
            "src/kustos/metadata/quorum/*",
            "src/kustos/client/quorum/follower.py",
            "src/kustos/client/quorum/forwarding.py",
        ),
        (
            "tests/property/test_quorum_theorems.py",
            "tests/unit/metadata/test_quorum_*.py",
            "tests/unit/client/test_quorum_*.py",
        ),
    ),
    "migrate": Target(
        (*(f"src/kustos/cli/migrate/{name}.py" for name in MIGRATE), "src/kustos/metadata/control/copies.py"),
        ("tests/unit/migrate/*.py", "tests/unit/metadata/test_control_copies.py"),
    ),
    "legacy": Target(("src/kustos/legacy/*",), ("tests/unit/legacy/test_*.py",)),
}
DESELECTED: Final = (
    "tests/unit/metadata/test_control_acls.py::test_one_request_deletes_10000_acls_and_no_more",
)
"""Tests that take seconds and cover other modules."""


@dataclass(slots=True)
class Outcome:
    """One module: the number of mutants and the status of the drawn ones."""

    total: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    survivors: list[str] = field(default_factory=list)
    equivalents: list[str] = field(default_factory=list)

    @property
    def killed(self) -> int:
        """The number of mutants that a test detected."""
        return sum(self.statuses[status] for status in KILLED)

    @property
    def counted(self) -> int:
        """The number of drawn mutants with an observable effect."""
        return self.statuses.total() - len(self.equivalents)

    @property
    def score(self) -> float:
        """The percentage of observable mutants that a test detected."""
        return 100 * self.killed / self.counted if self.counted else 100.0

    def add(self, other: "Outcome") -> None:
        """Add another module."""
        self.total += other.total
        self.statuses.update(other.statuses)
        self.survivors += other.survivors
        self.equivalents += other.equivalents

    def row(self, name: str) -> str:
        """Return a row of the table."""
        cells = (self.total, self.statuses.total(), self.killed, len(self.equivalents), len(self.survivors))
        return f"| {name} | {' | '.join(map(str, cells))} | {self.score:.0f} % |\n"


def run_mutmut(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Run mutmut and return its output; raise if it failed and failure was not expected."""
    done = subprocess.run(  # noqa: S603 (the arguments are constants)
        [MUTMUT, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if bool(done.returncode) is not fails:
        sys.stderr.write(done.stdout[-4000:] + done.stderr[-4000:])
        done.check_returncode()
    return done.stdout


def prepare(name: str, target: Target) -> Path:
    """Copy the target's files, make its mutants and let mutmut learn the coverage of each test."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for part in COPIED:
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    tests = [str(path.relative_to(ROOT)) for pattern in target.tests for path in sorted(ROOT.glob(pattern))]
    settings = {
        "source_paths": ["src"],
        "only_mutate": list(target.modules),
        "do_not_mutate": list(target.spared),
        "also_copy": [part for part in COPIED if part not in {"src", "tests"}],
        "use_git_change_detection": False,
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "--hypothesis-profile=mutation", "--timeout=0"],
        "pytest_add_cli_args_test_selection": [*tests, *(f"--deselect={test}" for test in DESELECTED)],
    }
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = [f"{key} = {_toml(value)}\n" for key, value in settings.items()]
    (folder / "pyproject.toml").write_text(project + "\n[tool.mutmut]\n" + "".join(lines), encoding="utf-8")
    # mutmut fails if no mutant has the name, but only after its preparations
    run_mutmut(folder, "run", "--max-children", "1", NONE, fails=True)
    return folder


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return f'"{value}"'


def faults(folder: Path) -> dict[str, str]:
    """Return the status of each mutant by name."""
    return {
        found["name"]: found["status"]
        for found in RESULT.finditer(run_mutmut(folder, "results", "--all", "1"))
    }


def module_of(fault: str) -> str:
    """Return the module of a mutant such as `kustos.acl.hosts.x_java_int__mutmut_3`."""
    return fault.rpartition(".")[0]


def draw(names: Iterable[str], sample: int, share: float | None, seed: int) -> list[str]:
    """Draw `sample` mutants of each module, or all if it has fewer; or a percentage of each module."""
    by_module: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        by_module[module_of(name)].append(name)
    chooser = random.Random(seed)  # noqa: S311 (a sample)
    drawn: list[str] = []
    for group in by_module.values():
        size = sample if share is None else math.ceil(len(group) * share / 100)
        drawn += chooser.sample(group, min(size, len(group)))
    return drawn


def function_of(fault: str) -> str:
    """Return the function of a mutant, for example `kustos.acl.hosts.HostRange.parse`."""
    module, _, mangled = fault.rpartition(".")
    name = re.sub(r"__mutmut_\d+$", "", mangled)
    return f"{module}.{name.removeprefix('x_') if name.startswith('x_') else name[2:].replace(METHOD, '.')}"


def is_equivalent(fault: str, diff: str, known: Sequence[dict[str, str]]) -> bool:
    """Return whether the list of equivalents names the mutant's changed lines or its whole function."""
    lines = diff.splitlines()[3:]
    removed = " ".join(line[1:].strip() for line in lines if line.startswith("-"))
    added = " ".join(line[1:].strip() for line in lines if line.startswith("+"))
    return any(
        each["function"] == function_of(fault)
        if "function" in each
        else (each["old"], each["new"]) == (removed, added)
        for each in known
    )


def try_target(name: str, sample: int, share: float | None, seed: int, pattern: str) -> dict[str, Outcome]:
    """Return the results of the drawn mutants of a target, by module."""
    folder = prepare(name, TARGETS[name])
    outcomes: defaultdict[str, Outcome] = defaultdict(Outcome)
    all_names = [fault for fault in faults(folder) if re.search(pattern, fault)]
    drawn = draw(all_names, sample, share, seed)
    for fault in all_names:
        outcomes[module_of(fault)].total += 1
    if not drawn:
        return outcomes
    run_mutmut(folder, "run", "--max-children", "1", *drawn)
    statuses = faults(folder)
    known = tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8"))["fault"]
    for fault in drawn:
        outcome = outcomes[module_of(fault)]
        outcome.statuses[statuses[fault]] += 1
        if statuses[fault] not in KILLED:
            diff = run_mutmut(folder, "show", fault)
            unseen = is_equivalent(fault, diff, known)
            (outcome.equivalents if unseen else outcome.survivors).append(diff)
    return outcomes


def main() -> int:
    """Run the targets, print a row for each module and each survivor; return 0 if the score suffices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"{', '.join(TARGETS)}; default: all")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="faults of each module at most")
    parser.add_argument("--share", type=float, help="faults of each module in percent, instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="of faults whose name has this regular expression")
    options = parser.parse_args()
    outcomes: dict[str, Outcome] = {}
    for target in options.targets or TARGETS:
        outcomes |= try_target(target, options.sample, options.share, options.seed, options.only)
    whole = Outcome()
    sys.stdout.write("| module | faults | drawn | killed | equivalent | survived | score |\n")
    sys.stdout.write("|---|--:|--:|--:|--:|--:|--:|\n")
    for module, outcome in sorted(outcomes.items()):
        sys.stdout.write(outcome.row(module.removeprefix("kustos.")))
        whole.add(outcome)
    sys.stdout.write(whole.row("all"))
    for diff in whole.survivors:
        sys.stdout.write(f"\n{diff}")
    return 0 if whole.score >= SCORE_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
