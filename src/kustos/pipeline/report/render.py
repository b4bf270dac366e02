"""The report as one HTML file: no script, no fetch, every name escaped and made visible.

Names are attacker-controlled text. Jinja escapes them, control and bidirectional characters are written as
codes so that a name cannot look like another, `<bdi>` isolates their direction from the text around them, and
the page's content security policy forbids scripts and fetches if all that fails.
"""

import unicodedata
from datetime import datetime
from math import log10
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kustos.pipeline.report.charts import short
from kustos.pipeline.report.model import Report
from kustos.pipeline.review.period import team_of

MAXIMUM_NAME_CHARACTERS: Final = 80
"""A longer name is cut in the page: Kafka's own names end at 249, an attacker's don't."""
MAXIMUM_SAMPLE_CHARACTERS: Final = 300
"""How much of a quarantined line the page shows; the table `quarantine` has more."""
OTHERS_SHOWN: Final = 20
"""Clusters named beside the one of the page; events may name any number of them."""
HEAT_STEPS: Final = 5
"""Shades of the heat map, one for each power of ten."""

_REASONS: Final = {
    "attempts_impossible": "a login that was tried more often than can be counted, or ended before it began",
    "blank": "empty line",
    "cluster_malformed": "the cluster that it names is not a name of one",
    "cluster_mismatch": "names another cluster than its input is of: a forgery, or a wrong `cluster`",
    "event_id_reserved": "has an id that kustos generates for lines of Kafka's own log: a forgery?",
    "field_missing": "a field that every event has is missing",
    "format_unknown": "neither a kustos event nor a line of Kafka's authorizer logger",
    "json_malformed": "begins as JSON but is not a whole object: a torn write?",
    "kafka_line_ambiguous": "a name imitates the words of the log line: an attempt to forge it?",
    "kafka_line_incomplete": "an audit line cut short: a name with a line break, perhaps a forgery",
    "kafka_note": "a remark of Kafka's authorizer logger beside its decisions, such as on a super user",
    "line_part": "a part of a line whose other parts are missing: a container's log that was cut",
    "line_too_long": "longer than any event",
    "not_utf8": "not text in UTF-8: a binary file?",
    "schema_version_unknown": "written by another version of kustos",
    "time_out_of_range": "a time that does not exist or lies outside of 1970 to 9999",
    "value_invalid": "a value that its field cannot have, such as an operation of another service than Kafka",
}


def visible(text: str, limit: int = MAXIMUM_NAME_CHARACTERS) -> str:
    """Return the text with invisible characters as codes, cut to `limit` characters."""
    shown = text[:limit] + ("…" if len(text) > limit else "")
    return "".join(
        f"\\u{ord(c):04x}" if c != " " and unicodedata.category(c)[0] in "CZ" else c for c in shown
    )


def name(text: str | None) -> Markup:
    """Return a name as markup; None is any name of its type."""
    if text is None:
        return Markup("<i>any</i>")
    return Markup("<bdi>{}</bdi>").format(visible(text) or "(empty)")


def heat(allowed: int, denied: int) -> str:
    """Return the class of a cell: what was decided, and its shade."""
    total = allowed + denied
    if total == 0:
        return "none"
    kind = "allowed" if denied == 0 else "denied" if allowed == 0 else "mixed"
    return f"{kind} h{min(HEAT_STEPS, int(log10(total)) + 1)}"


def utc(time: datetime | None) -> str:
    """Return minutes and seconds of UTC, without its zone (the page says it once)."""
    return "never" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def kind_text(kind: str) -> str:
    """Return a kind of findings as words."""
    words = kind.split("_")
    return " ".join(word if word == "ACL" else word.lower() for word in words)


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun in the singular or the plural."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def render_report(report: Report) -> str:
    """Return the whole page."""
    environment = Environment(
        loader=PackageLoader("kustos.pipeline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"name": name, "utc": utc, "short": short, "number": lambda n: f"{n:,}"}
    environment.filters["sample"] = lambda text: escape(visible(text, MAXIMUM_SAMPLE_CHARACTERS))
    environment.filters["kind"] = kind_text
    environment.filters["counted"] = counted
    shown = [each for each in report.matrix.principals if each is not None]
    places = {each: number for number, each in enumerate(shown)}
    flips = () if report.replayed is None else report.replayed.flips
    return environment.get_template("report.html.j2").render(
        report=report,
        totals=report.totals,
        heat=heat,
        reasons=_REASONS,
        shown=shown,
        place_of=lambda principal: places.get(principal, "none"),
        other_clusters=sorted(report.others.items(), key=lambda each: (-each[1], each[0]))[:OTHERS_SHOWN],
        team_of=lambda principal: team_of(principal, report.teams),
        most_flipped=max((flip.requests for flip in flips), default=1),
        age_count=max(1, max((n for _, n in report.grants.ages), default=0)) if report.grants else 1,
        most_failed=max((each.failed for each in report.logins.sources), default=1) if report.logins else 1,
        most_denied=max((d.attempts for d in report.denials), default=1),
    )
