"""Each make target sets up what it uses, and nothing else."""

import re
import subprocess

import pytest

from testkit.jars import KAFKA, labels
from testkit.paths import ROOT

ONLY_FOR_TESTS = {"chromium", "haproxy", "iproute2", "kcat", "rsyslog", "systemd"}
KDC = {"krb5-admin-server", "krb5-kdc"}


def listed(target: str) -> dict[str, set[str]]:
    """Return what a target sets up, by kind: `packages` of the system, sets of `jars`."""
    done = subprocess.run(
        ["scripts/setup", "--print", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    kinds = (line.split() for line in done.stdout.splitlines())
    return {kind: set(names) for kind, *names in kinds}


def test_the_demo_needs_java_maven_and_the_jars_of_one_kafka() -> None:
    demo = listed("demo")
    assert demo["jars"] == {KAFKA.label}
    assert {"default-jdk-headless", "maven"} <= demo["packages"]
    assert not (ONLY_FOR_TESTS | KDC) & demo["packages"]


def test_tests_need_every_package_and_every_set_of_jars() -> None:
    everything = listed("all")
    assert everything["packages"] >= ONLY_FOR_TESTS | KDC
    assert everything["jars"] == set(labels())


def test_documentation_needs_no_java() -> None:
    python = listed("python")
    assert python["jars"] == set()
    assert "default-jdk-headless" not in python["packages"]


def test_each_step_that_the_makefile_names_is_known() -> None:
    named = set(re.findall(r"^[a-z%-]+: setup-([a-z-]+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "bench", "fuzz", "differential"} <= named
    for target in named:
        assert listed(target)["packages"]


def test_an_unknown_step_is_refused() -> None:
    done = subprocess.run(
        ["scripts/setup", "--print", "tea"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.partition(";")[0]) == (1, "setup: no step `tea`")
    with pytest.raises(subprocess.CalledProcessError):
        listed("tea")
