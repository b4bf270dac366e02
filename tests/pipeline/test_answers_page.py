"""The sections of answers on the page: a browser shows them, and hostile names stay text."""

from pathlib import Path

from kustos.pipeline.report.accesses import AccessRow, Matrix
from kustos.pipeline.report.answers import (
    DormantGrant,
    FindingGroup,
    FindingRow,
    Findings,
    Flip,
    Grants,
    Replayed,
)
from kustos.pipeline.report.charts import Bar, chart_of
from kustos.pipeline.report.logins import FailureSource, Logins
from kustos.pipeline.report.model import Conflict, Report, TeamRow, Totals
from kustos.pipeline.report.news import News
from kustos.pipeline.report.render import render_report
from testkit.browser import browse
from tests.pipeline.answer_rows import at
from tests.pipeline.test_report_page import HOSTILE, Elements, watch


def report_of(name: str) -> Report:
    """Return a report all of whose names are the given one."""
    flip = Flip(name, "READ", "TOPIC", name, False, 5, 1, at(0), at(1), name)
    grant = DormantGrant(name, name, "WRITE", "TOPIC", name, "PREFIXED", None, None, None)
    finding = FindingRow(
        "f" * 64,
        "OPEN",
        True,
        name,
        "NEW_HOST",
        "HIGH",
        0.5,
        name,
        "TOPIC",
        name,
        at(0),
        at(1),
        f"seen `{name}`",
        False,
        True,
    )
    access = AccessRow(name, "READ", "TOPIC", name, "ALLOWED", 1, 1, at(0), at(1))
    source = FailureSource(name, name, 1, 0, at(0), at(1), (name,))
    return Report(
        files=1,
        lines=1,
        outcomes={"event": 1, "security_events": 0, "quarantined": 0, "duplicate": 0},
        totals=Totals(1, 0, 0, 0, 0, 1, 1, at(0), at(10), 1),
        denials=(),
        matrix=Matrix((name, "User:bob"), (("TOPIC", name),), {(name, ("TOPIC", name)): (1, 0)}),
        activity=chart_of([Bar(at(0), 1, 0)], 3600),
        denied_activity=None,
        drill_down=((name, (access,)), ("User:bob", ())),
        reasons=(),
        conflicts=(Conflict(name, name, 1, name),),
        replayed=Replayed(5, 0, 0, 0, 1, (flip,)),
        grants=Grants(1, 1, 1, 2, 3, at(0).date(), (("1 day", 0), ("no use recorded", 1)), (grant,)),
        logins=Logins(
            0,
            1,
            1,
            1,
            chart_of([Bar(at(0), 0, 1)], 60),
            (source,),
        ),
        findings=Findings(1, (FindingGroup("NEW_HOST", 1, 1, (finding,), ((0.0, 0.1, finding),)),)),
        teams={name: name},
        by_team=(TeamRow(name, 1, 1, 0), TeamRow(None, 1, 0, 0)),
        news=News(at(0), 1, 0, 1, 1, 2, (access,)),
    )


def test_no_name_in_an_answer_becomes_markup() -> None:
    for name in HOSTILE:
        page = render_report(report_of(name))
        found = Elements()
        found.feed(page)
        assert not found.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "a"}
        assert not {attribute for attribute in found.attributes if attribute.startswith("on")}
        assert not found.attributes & {"src", "href", "srcset", "action"}
        assert "\u202e" not in page


def test_a_browser_shows_replay_findings_and_grants(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(render_report(report_of(HOSTILE[0])), encoding="utf-8")
    shown, requests = watch(page, tmp_path)
    assert "CONSOLE" not in shown.stderr
    assert not requests
    for section in ("replayed", "findings", "grants", "news", "teams"):
        assert f'<section id="{section}">' in shown.stdout
    assert "would no longer be allowed" in shown.stdout
    assert shown.stdout.count('<rect class="HIGH"') == 1
    assert "Not safe to remove." in shown.stdout
    pdf = tmp_path / "page.pdf"
    browse(page, tmp_path / "p", "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF-")


def test_a_grant_of_unknown_age_is_not_called_old() -> None:
    page = render_report(report_of("User:alice"))
    assert "For 1 of these the number of days is unknown" in page
    assert '<td data-label="days">unknown</td>' in page
    assert "no use recorded" in page
    assert f"For 2 it is too early to say: the record covers the days since {at(0).date()}, 3 days of" in page
    assert "never used" not in page
    assert '<td class="t" data-label="last use">none recorded</td>' in page


CHOOSE = """
const rows = [...document.querySelectorAll("[data-p]")], count = () =>
  rows.filter(each => getComputedStyle(each).display != "none").map(each => each.dataset.p).join("");
const said = [count()];
for (const which of ["0", "1", "all"]) {
  document.getElementById("show-" + which).click();
  said.push(count());
}
document.title = said.join(" ");
"""


def test_the_page_shows_one_principal_without_a_script(tmp_path: Path) -> None:
    """A script of the test alone, which the page itself would not run, clicks and looks."""
    page = tmp_path / "page.html"
    text = render_report(report_of("User:alice"))
    assert "default-src 'none'" in text
    text = text.replace("default-src 'none'", "default-src 'unsafe-inline'")
    page.write_text(text.replace("</body>", f"<script>{CHOOSE}</script></body>"), encoding="utf-8")
    shown, _ = watch(page, tmp_path)
    title = shown.stdout[shown.stdout.index("<title>") + 7 : shown.stdout.index("</title>")]
    everybody, alice, bob, again = title.split(" ")
    assert everybody == again
    assert alice == everybody.replace("1", "")
    assert bob == everybody.replace("0", "")
    assert len(alice) > len(bob) > 0


MEASURE = """
for (const each of document.querySelectorAll("details")) each.open = true;
const room = document.documentElement.clientWidth;
const wide = [...document.querySelectorAll("main, section, section *")].filter(each =>
  !each.closest(".scroll") && each.getBoundingClientRect().right > room + 1).map(each => each.tagName);
document.title = [room <= 500, wide.length, ...new Set(wide)].join(" ");
"""


def test_a_narrow_window_holds_the_longest_names(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    text = render_report(report_of("User:CN=" + "n" * 200))
    text = text.replace("default-src 'none'", "default-src 'unsafe-inline'")
    page.write_text(text.replace("</body>", f"<script>{MEASURE}</script></body>"), encoding="utf-8")
    shown = browse(page, tmp_path / "profile", "--dump-dom", "--window-size=420,2000").stdout
    assert shown[shown.index("<title>") + 7 : shown.index("</title>")] == "true 0"
