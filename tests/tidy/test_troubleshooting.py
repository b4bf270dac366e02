"""The troubleshooting page quotes real messages; the configurations on the scheduling page parse."""

import ast
import configparser
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

from testkit.jars import KAFKA
from testkit.paths import ROOT
from tests.tidy.command_lines import require_whole, texts_of_source

PAGE = (ROOT / "docs" / "how-to" / "troubleshoot.md").read_text()
SCHEDULES = (ROOT / "docs" / "how-to" / "schedule.md").read_text()
CLIENTS, COMMANDS = PAGE.split("## Messages of clients")[1].split("## Messages of commands and nodes")


def fragments(section: str) -> list[str]:
    """Return the texts between `…` in the first cell of each row."""
    cells = re.findall(r"^\| (`[^|]+`)[^|]*\|", section, re.MULTILINE)
    messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
    found = [part.strip(" […]") for message in messages for part in message.split("…")]
    return [part for part in found if len(part) > 3]


@cache
def our_texts() -> str:
    return "\n".join(text for path in (ROOT / "src").rglob("*.py") for text in texts_of_source(path))


@pytest.mark.parametrize("fragment", fragments(COMMANDS))
def test_a_message_of_ours_is_in_the_code(fragment: str) -> None:
    assert fragment.replace("`", "") in our_texts().replace("`", "")


def test_a_message_of_a_client_is_in_kafkas_classes(tmp_path: Path) -> None:
    (clients,) = KAFKA.resolve().glob("kafka-clients-*.jar")
    wanted = ["org/apache/kafka/common/*", "org/apache/kafka/clients/NetworkClient*"]
    subprocess.run(["unzip", "-q", str(clients), *wanted, "-d", str(tmp_path)], check=True)
    classes = b"\n".join(path.read_bytes() for path in tmp_path.rglob("*.class"))
    # made of parts by the broker
    composed = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
    missing = [each for each in fragments(CLIENTS) if each != composed and each.encode() not in classes]
    assert missing == []


def files_of(page: str) -> dict[str, str]:
    return dict(re.findall(r'```[a-z]+ title="([^"]+)"\n(.*?)```', page, re.DOTALL))


def test_schedules_can_be_parsed(tmp_path: Path) -> None:
    files = files_of(SCHEDULES)
    job = yaml.safe_load(files["cronjob.yaml"])
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    container = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][:2] == ["pipeline", "run"]
    ast.parse(files["kustos_pipeline.py"])
    (entry,) = files["/etc/cron.d/kustos"].splitlines()
    assert re.match(r"(\S+ ){5}kustos cd ", entry)
    for name in ("kustos-pipeline.service", "kustos-pipeline.timer"):
        unit = files[f"/etc/systemd/system/{name}"]
        configparser.RawConfigParser(strict=False).read_string(unit)
        (tmp_path / name).write_text(re.sub(r"/opt/kustos/bin/kustos", shutil.which("true") or "", unit))
    systemd = shutil.which("systemd-analyze")
    assert systemd is not None, "no systemd-analyze: apt-get install systemd"
    done = subprocess.run(
        [systemd, "verify", "--man=no", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if "kustos-pipeline" in line] == []


def test_schedules_run_whole_commands() -> None:
    lines = [
        line for text in files_of(SCHEDULES).values() for line in re.findall(r"bin/(kustos [^&\n\"]*)", text)
    ]
    assert len(lines) > 6
    for line in lines:
        require_whole(line.replace("{{ ds }}", "today"))


def test_the_configuration_of_the_load_balancer_is_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "high-availability.md").read_text()
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert program is not None, "no haproxy: apt-get install haproxy"
    (tmp_path / "haproxy.cfg").write_text(files_of(page)["haproxy.cfg"])
    subprocess.run([program, "-c", "-f", str(tmp_path / "haproxy.cfg")], check=True, capture_output=True)
