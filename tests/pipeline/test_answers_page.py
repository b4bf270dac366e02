"""The sections of answers on the page: a browser shows them, and hostile names stay text."""

from pathlib import Path

from kustos.pipeline.report.answers import (
    DormantGrant,
    FindingGroup,
    FindingRow,
    Findings,
    Flip,
    Grants,
    Replayed,
)
from kustos.pipeline.report.logins import FailureSource, LoginBucket, Logins
from kustos.pipeline.report.model import Matrix, Report, Totals
from kustos.pipeline.report.render import render_report
from tests.pipeline.answer_rows import at
from tests.pipeline.test_report_page import HOSTILE, Elements, browse, watch


def report_of(name: str) -> Report:
    """Return a report all of whose names are the given one."""
    flip = Flip(name, "READ", "TOPIC", name, False, 5, 1, at(0), at(1), name)
    grant = DormantGrant(name, name, "WRITE", "TOPIC", name, "PREFIXED", None, None, None)
    finding = FindingRow("NEW_HOST", "HIGH", 0.5, name, "TOPIC", name, at(0), at(1), f"seen `{name}`", False)
    source = FailureSource(name, name, 1, 0, at(0), at(1), (name,))
    return Report(
        files=1,
        lines=1,
        outcomes={"event": 1, "security_events": 0, "quarantined": 0, "duplicate": 0},
        totals=Totals(1, 0, 0, 0, 0, 1, 1, at(0), at(10)),
        denials=(),
        matrix=Matrix((), (), {}),
        bucket_seconds=3600,
        buckets=(),
        drill_down=(),
        reasons=(),
        replayed=Replayed(5, 0, 0, 0, 1, (flip,)),
        grants=Grants(1, 1, (("1 day", 0), ("never used", 1)), (grant,)),
        logins=Logins(
            0,
            1,
            1,
            1,
            60,
            (LoginBucket(at(0), 0, 1),),
            (source,),
        ),
        findings=Findings(1, (FindingGroup("NEW_HOST", 1, 1, (finding,), ((0.0, 0.1, finding),)),)),
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
    for section in ("replayed", "findings", "grants"):
        assert f'<section id="{section}">' in shown.stdout
    assert "would no longer be allowed" in shown.stdout
    assert shown.stdout.count('<rect class="HIGH"') == 1
    assert "Not safe to remove." in shown.stdout
    pdf = tmp_path / "page.pdf"
    browse(page, tmp_path / "p", "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    assert pdf.read_bytes().startswith(b"%PDF-")
