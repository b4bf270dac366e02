"""Small multiples as one SVG: both axes logarithmic, a line for each side, no library needed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 300
HEIGHT: Final = 230
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 34, 36
COLUMNS: Final = 3
LEGEND: Final = 30
COLOURS: Final = {"kustos": "#0b6e99", "Kafka": "#c2571a"}
GREY: Final = "#8a8a8a"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Panel:
    """One question: a title with its unit, and a curve for each side."""

    title: str
    curves: Mapping[str, Points]


@dataclass(frozen=True, slots=True)
class Axis:
    """Whole decades, laid onto so many pixels from `start` to `end`."""

    lowest: int
    highest: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> "Axis":
        lowest, highest = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return cls(lowest, max(highest, lowest + 1), start, end)

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.lowest) / (self.highest - self.lowest)
        return self.start + share * (self.end - self.start)

    def decades(self) -> list[float]:
        return [10.0**exponent for exponent in range(self.lowest, self.highest + 1)]


def number(value: float) -> str:
    """Write 1000 as 1k, as short as it goes."""
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def text(x: float, y: float, words: str, anchor: str = "middle", **more: str) -> str:
    style = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in more.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{GREY}" stroke-opacity="0.3"/>'
    )


def panel_svg(panel: Panel, left: float, top: float, colours: Mapping[str, str]) -> list[str]:
    points = [point for curve in panel.curves.values() for point in curve]
    across = Axis.over([x for x, _ in points], left + LEFT, left + WIDTH - RIGHT)
    up = Axis.over([y for _, y in points], top + HEIGHT - BOTTOM, top + TOP)
    parts = [text(left + LEFT, top + 18, panel.title, "start", font_weight="bold")]
    for value in across.decades():
        x = across.place(value)
        parts += [line(x, up.start, x, up.end), text(x, up.start + 16, number(value))]
    for value in up.decades():
        y = up.place(value)
        parts += [line(across.start, y, across.end, y), text(across.start - 6, y + 4, number(value), "end")]
    for side, curve in panel.curves.items():
        places = [(across.place(x), up.place(y)) for x, y in curve]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        colour = colours[side]
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return parts


def drawing(panels: Sequence[Panel], below: str, colours: Mapping[str, str] = COLOURS) -> str:
    """Return an SVG of the panels, a legend of the sides' colours and a word on the horizontal axes."""
    rows = -(-len(panels) // COLUMNS)
    width, height = WIDTH * COLUMNS, HEIGHT * rows + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{GREY}">',
        # readable on light pages and dark ones
        f'<rect width="{width}" height="{height}" fill="none"/>',
    ]
    for index, panel in enumerate(panels):
        parts += panel_svg(panel, index % COLUMNS * WIDTH, index // COLUMNS * HEIGHT, colours)
    x = float(LEFT)
    for side, colour in colours.items():
        parts.append(f'<rect x="{x}" y="{height - 20}" width="14" height="4" fill="{colour}"/>')
        parts.append(text(x + 20, height - 14, side, "start"))
        x += max(90, 30 + 7 * len(side))
    parts.append(text(width - RIGHT, height - 14, below, "end"))
    return "\n".join([*parts, "</svg>", ""])
