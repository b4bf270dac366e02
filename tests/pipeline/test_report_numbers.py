"""The numbers behind the page's plots and its heat map: exact, and within reach of a keyboard."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from random import Random

import pytest

from kustos.pipeline.report.accesses import Matrix, ResourceLabel
from kustos.pipeline.report.charts import Bar, Chart, chart_of
from kustos.pipeline.report.logins import Logins
from kustos.pipeline.report.model import Report, Totals
from kustos.pipeline.report.render import counted, render_report
from testkit.seeds import seed_of_run

START = datetime(2026, 11, 1, tzinfo=UTC)
VOID = {"meta", "rect", "line", "input", "br"}
"""Elements without an end."""


@dataclass
class Element:
    """An element of the page: its tag, attributes, the elements in it, and all of its text."""

    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> Iterator["Element"]:
        """Yield the elements of a tag within this one, in the order of the page."""
        for child in self.children:
            if child.tag == tag:
                yield child
            yield from child.all(tag)

    def cells(self) -> list[list[str]]:
        """Return the texts of a table's rows but for its head."""
        (body,) = self.all("tbody")
        return [[" ".join(cell.text.split()) for cell in row.all("td")] for row in body.all("tr")]


class Tree(HTMLParser):
    """Makes elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(found)
        if tag not in VOID:
            self._open.append(found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data


def drawn_chart(random: Random) -> Chart:
    counts = [0, 1, 9, 9_999, 58_123, 1_234_567]
    bars = [
        Bar(START + timedelta(days=day), random.choice(counts), random.choice(counts)) for day in range(30)
    ]
    found = chart_of([*bars, Bar(START + timedelta(days=30), 58_123, 1)], 86_400)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def report() -> Report:
    """A page on counts that its plots and cells shorten."""
    random = Random(seed_of_run())
    activity, logins = drawn_chart(random), drawn_chart(random)
    denied = chart_of([Bar(bar.start, 0, bar.denied) for bar in activity.bars], 86_400)
    cells: dict[tuple[str | None, ResourceLabel], tuple[int, int]] = {
        ("User:a", ("TOPIC", "t")): (58_123, 1_234_567),
        ("User:b", None): (7, 0),
        (None, None): (0, 3),
    }
    return Report(
        files=1, lines=None, outcomes={"quarantined": 0},
        totals=Totals(58_130, 1_234_570, 0, 0, 0, 3, 2, START, START + timedelta(days=31), 7),
        denials=(), matrix=Matrix(("User:a", "User:b", None), (("TOPIC", "t"), None), cells),
        activity=activity, denied_activity=denied, drill_down=(), reasons=(),
        logins=Logins(1, 1, 1, 1, logins, ()),
    )  # fmt: skip


@pytest.fixture(scope="module")
def page(report: Report) -> Element:
    tree = Tree()
    tree.feed(render_report(report))
    return tree.root


def one_of(page: Element, **attributes: str) -> Element:
    """Return the element with these attributes."""
    (found,) = (
        element
        for tag in ("div", "table", "section")
        for element in page.all(tag)
        if attributes.items() <= element.attributes.items()
    )
    return found


def test_the_tables_behind_plots_have_every_bar(page: Element, report: Report) -> None:
    tables = [
        table.cells()
        for region in page.all("div")
        if region.attributes.get("aria-label") == "numbers of the plot"
        for table in region.all("table")
    ]
    assert report.activity is not None
    assert report.logins is not None
    assert report.logins.chart is not None
    charts = (report.activity, report.logins.chart)
    assert tables == [
        [
            [f"{bar.start:%Y-%m-%d %H:%M:%S}", f"{bar.allowed:,}", f"{bar.denied:,}"]
            for bar in chart.bars
            if bar.allowed or bar.denied
        ]
        for chart in charts
    ]


@pytest.mark.parametrize(("name", "table"), [("activity", 0), ("denied", 0), ("login-activity", 1)])
def test_a_plot_draws_what_its_table_says(page: Element, name: str, table: int) -> None:
    (plot,) = one_of(page, id=name).all("svg")
    heights = {kind: [] for kind in ("fill-allow", "fill-deny")}  # type: dict[str, list[float]]
    for bar in plot.all("rect"):
        heights[bar.attributes["class"]].append(float(bar.attributes["height"]))
    rows = [*page.all("table")]
    numbers = [one for one in rows if one.attributes["class"] == "rows few"][table].cells()
    counts = [[int(row[place].replace(",", "")) for row in numbers] for place in (1, 2)]
    allowed, denied = ([count for count in column if count] for column in counts)
    assert len(heights["fill-deny"]) == len(denied)
    assert len(heights["fill-allow"]) == (0 if name == "denied" else len(allowed))
    # the last bar has one denial and, but for the plot of denials, 58,123 uses: the scale of the others
    drawn = heights["fill-deny"] if name == "denied" else heights["fill-allow"]
    shown = denied if name == "denied" else allowed
    highest, most = max(drawn), max(shown)
    assert all(
        abs(height - highest * count / most) < 0.02 for height, count in zip(drawn, shown, strict=True)
    )
    titles = [
        " ".join(re.findall(r"[\d,]+(?= (?:allowed|denied|succeeded|failed))", one.text))
        for one in plot.all("title")
    ]
    told = [row[1:] if name != "denied" else row[2:] for row in numbers]
    assert titles == [" ".join(row) for row in told if name != "denied" or row != ["0"]]


def test_the_heat_map_has_its_exact_counts_in_a_table(page: Element, report: Report) -> None:
    numbers = one_of(page, **{"aria-label": "numbers of who uses what"})
    (table,) = numbers.all("table")
    assert table.cells() == [
        ["User:a", "TOPIC t", "58,123", "1,234,567"],
        ["User:b", "others", "7", "0"],
        ["others", "others", "0", "3"],
    ]
    cells = [cell for cell in one_of(page, id="matrix").all("td") if cell.text]
    assert [cell.attributes["title"] for cell in cells] == [
        "58123 allowed, 1234567 denied", "7 allowed, 0 denied", "0 allowed, 3 denied",
    ]  # fmt: skip
    assert [cell.text for cell in cells] == ["1.2M✕ 1.2M", "7", "3✕ 3"]


def test_whatever_scrolls_can_be_scrolled_by_keyboard_and_has_a_name(page: Element) -> None:
    """Browsers scroll what has the focus; a table within `details` comes with its `summary`."""
    scrolled = [one for one in page.all("div") if "scroll" in one.attributes.get("class", "").split()]
    assert len(scrolled) == 4
    for one in scrolled:
        assert (one.attributes["tabindex"], one.attributes["role"]) == ("0", "region")
        assert one.attributes["aria-label"]
    behind = [one for one in page.all("details") if any(one.all("div"))]
    assert [next(one.all("summary")).text.startswith("In numbers") for one in behind] == [True] * 3
    for plot in page.all("svg"):
        assert plot.attributes["role"] == "img"
        assert "the table below has the numbers" in plot.attributes["aria-label"]


def test_one_of_a_thing_is_singular() -> None:
    said = [counted(1, "name"), counted(0, "name"), counted(1, "address", "addresses")]
    assert said == ["1 name", "0 names", "1 address"]
    assert counted(2_500, "address", "addresses") == "2,500 addresses"
