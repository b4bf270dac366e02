"""The page as a browser shows it, with names that an attacker chose, and the command that makes it."""

import json
import re
import subprocess
from contextlib import redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kustos.cli.failures import ExitCode
from kustos.cli.run import run
from kustos.pipeline.report.charts import short
from kustos.pipeline.report.render import heat, visible
from testkit.browser import browse
from tests.pipeline.events import event_line, login_line

HOSTILE = (
    "<script>document.title='owned'</script>",
    "<img src=http://127.0.0.1:9/x onerror=document.title='owned'>",
    '"><svg onload=document.title="owned">',
    "{{ 7 * 7 }}{% raw %}",
    "al\u202eice\u0000",
    "n" * 5000,
)
REPORT = ("pipeline", "report")
BROWSERS_OWN = (
    r"https?://(?:update\.googleapis\.com/service/update2/|clients2\.google\.com/time/"
    r"|accounts\.google\.com/ListAccounts)"
)
"""Chromium's own calls home, which its flags do not all silence; no name resolves, so none gets out."""


@dataclass(frozen=True, slots=True)
class Made:
    """A report made by the command."""

    page: Path
    summary: dict[str, int | str]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("report")
    audit, out = folder / "audit", folder / "out"
    audit.mkdir()
    lines = [
        event_line(
            10 * number + turn,
            principal_name=name,
            resource_name=HOSTILE[-1 - number],
            decision=("ALLOWED", "DENIED", "ERROR")[turn],
            time_ms=1_795_233_600_000 + 60_000 * (number + turn),
        )
        for number, name in enumerate(HOSTILE)
        for turn in range(3)
    ]
    lines += [
        login_line(
            number,
            claimed_name=name,
            host=f"10.0.0.{number + 1}",
            failure=name[:40],
            attempt_count=number + 1,
            time_ms=1_795_233_600_000 + 60_000 * number,
            first_time_ms=1_795_233_600_000,
        )
        for number, name in enumerate(HOSTILE)
    ]
    lines.append(login_line(90, result="SUCCESS", failure=None))
    lines.append(login_line(91, claimed_name=None, host=None, attempt_count=3))
    lines.append("<script>document.title='owned'</script> is not an event")
    (audit / "audit.jsonl").write_text("\n".join(lines))
    with redirect_stdout(StringIO()) as said:
        assert run([*REPORT, "--audit", str(audit), "--out", str(out), "--output", "json"]) == ExitCode.OK
    return Made(out / "report.html", json.loads(said.getvalue()))


class Elements(HTMLParser):
    """Collects what could run or fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def watch(page: Path, folder: Path) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Show the page; return what the browser said and the addresses asked for by pages, not by itself."""
    netlog = folder / "net.json"
    shown = browse(page, folder / "profile", "--dump-dom", f"--log-net-log={netlog}")
    events = netlog.read_text()
    asked = set(re.findall(r'"url":"((?:https?|wss?|ftp)://[^"]*)"', events))
    return shown, {url for url in asked if not re.match(BROWSERS_OWN, url)}


def test_the_command_prints_the_summary_as_json(made: Made) -> None:
    assert (made.summary["lines"], made.summary["events"], made.summary["quarantined"]) == (27, 18, 1)
    assert (made.summary["security_events"], made.summary["failed_logins"]) == (8, 24)
    assert (made.summary["allowed"], made.summary["denied"]) == (6, 12)
    assert made.summary["report"] == str(made.page)


def test_no_name_becomes_markup_and_nothing_is_fetched(made: Made) -> None:
    text = made.page.read_text(encoding="utf-8")
    found = Elements()
    found.feed(text)
    assert not found.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "a"}
    assert not {name for name in found.attributes if name.startswith("on")}
    assert not found.attributes & {"src", "href", "srcset", "action"}
    assert "url(" not in text
    assert "@import" not in text
    assert "&lt;script&gt;document" in text
    assert "{{ 7 * 7 }}" in text
    assert "al\\u202eice\\u0000" in text
    assert "\u202e" not in text
    assert "n" * 81 not in text


def test_the_page_says_what_its_numbers_count(made: Made) -> None:
    """A gateway sums up decisions beyond a principal's budget."""
    text = made.page.read_text(encoding="utf-8")
    assert "All numbers count recorded decisions;" in text
    assert "<code>decision_count</code>" in text


def test_failed_logins_are_told_by_who_from_where_and_how_often(made: Made) -> None:
    text = made.page.read_text(encoding="utf-8")
    section = text[text.index('<section id="logins">') :]
    section = section[: section.index("</section>")]
    assert "24 attempts failed, of 6 names from 6 addresses; 1 succeeded." in section
    assert section.count("<li>") == len(HOSTILE) + 1
    assert "<i>no name, or many</i> from <i>many addresses</i>" in section
    numbers = [int(found) for found in re.findall(r"%\"></i>(\d+)", section)]
    assert numbers == sorted(numbers, reverse=True)
    assert sum(numbers) == 24


def test_a_browser_shows_the_plots_without_errors_or_requests(made: Made, tmp_path: Path) -> None:
    shown, requests = watch(made.page, tmp_path)
    assert "CONSOLE" not in shown.stderr
    assert not requests
    assert "<title>Kafka access report</title>" in shown.stdout
    assert shown.stdout.count("<rect") >= 2 * 8
    assert len(re.findall("<li[ >]", shown.stdout)) == 12 + len(HOSTILE) + 1
    cells = re.findall(r'<td class="(allowed|denied|mixed) h\d"', shown.stdout)
    assert cells


def test_the_next_page_tells_what_is_new_since_the_last(spark: SparkSession, tmp_path: Path) -> None:
    """A new access, a new denial, a new principal; one principal is not seen any more."""
    audit, out = tmp_path / "audit", tmp_path / "out"
    audit.mkdir()
    begin, later = 1_795_233_600_000, 1_795_233_700_000

    def report() -> str:
        with redirect_stdout(StringIO()):
            assert run([*REPORT, "--audit", str(audit), "--out", str(out), "--output", "json"]) == ExitCode.OK
        return (out / "report.html").read_text(encoding="utf-8")

    def write(name: str, *lines: str) -> None:
        (audit / name).write_text("".join(f"{line}\n" for line in lines))

    def line(number: int, who: str, what: str, decision: str, time_ms: int) -> str:
        return event_line(number, principal_name=who, resource_name=what, decision=decision, time_ms=time_ms)

    write(
        "a.jsonl",
        line(1, "alice", "old", "ALLOWED", begin),
        line(2, "bob", "old", "ALLOWED", begin + 50_000),
    )
    first = report()
    assert '<meta name="kustos-last-event" content="2026-11-21T' in first
    assert 'id="news"' not in first
    write(
        "b.jsonl",
        line(3, "alice", "old", "ALLOWED", later),
        line(4, "alice", "new", "ALLOWED", later + 1),
        line(5, "carol", "old", "DENIED", later + 2),
    )
    text = report()
    news = text[text.index('<section id="news">') :]
    news = news[: news.index("</section>")]
    said = " ".join(re.sub("<[^>]*>", "", news).split())
    assert "1 access was allowed and 1 denied for the first time, 1 principal appeared" in said
    assert "and 1 of the earlier principals was not seen again" in said
    assert re.findall(r'<tr data-p="\d+"><td class="(?:allow|deny)">(\w+)</td>', news) == [
        "DENIED",
        "ALLOWED",
    ]
    assert "0 accesses were allowed and 0 denied for the first time" in " ".join(
        re.sub("<[^>]*>", "", report()).split()
    )


def test_an_error_or_a_request_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    addresses = {"http://127.0.0.1:9/x", "https://fonts.googleapis.com/css"}
    images = "".join(f"<img src='{address}'>" for address in addresses)
    page.write_text(f"<title>x</title><script>nothing()</script>{images}")
    shown, requests = watch(page, tmp_path)
    assert "CONSOLE" in shown.stderr
    assert requests == addresses


def test_it_prints_on_paper(made: Made, tmp_path: Path) -> None:
    pdf = tmp_path / "report.pdf"
    browse(made.page, tmp_path / "p", "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF-")
    assert pdf.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("audit", "out", "code", "words"),
    [
        ("missing", "out", ExitCode.USAGE, "does not exist"),
        (".", "out", ExitCode.USAGE, "holds no audit files"),
        ("audit", "audit/out", ExitCode.FAILED, "must lie apart"),
    ],
)
def test_each_failure_has_its_exit_code_and_says_what_to_do(
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    audit: str,
    out: str,
    code: ExitCode,
    words: str,
) -> None:
    if audit == "audit":
        (tmp_path / "audit").mkdir()
        (tmp_path / "audit" / "a").touch()
    assert run([*REPORT, "--audit", str(tmp_path / audit), "--out", str(tmp_path / out)]) == code
    assert words in capsys.readouterr().err


def test_without_java_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert run([*REPORT, "--audit", str(tmp_path), "--out", str(tmp_path / "o")]) == ExitCode.USAGE
    assert "install a Java runtime 17 or later" in capsys.readouterr().err


def test_without_pyspark_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").touch()
    monkeypatch.setitem(__import__("sys").modules, "pyspark", None)
    assert run([*REPORT, "--audit", str(tmp_path), "--out", str(tmp_path / "o")]) == ExitCode.USAGE
    assert "pip install 'kustos[spark]'" in capsys.readouterr().err


def test_names_are_shown_as_they_are_cells_in_few_characters() -> None:
    assert visible("a\tb\u200bc") == "a\\u0009b\\u200bc"
    assert [heat(0, 0), heat(1, 0), heat(0, 10), heat(500, 1)] == [
        "none",
        "allowed h1",
        "denied h2",
        "mixed h3",
    ]
    assert [short(n) for n in (9_999, 10_000, 123_456_789, 10**12)] == ["9999", "10k", "123M", "1000G"]
    assert [short(n) for n in (999_999, 10**6, 5_870_000, 9_999_999_999)] == ["999k", "1M", "5.8M", "9.9G"]
