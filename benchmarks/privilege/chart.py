"""The trade-off as one SVG of two panels, each point with its weight; no library needed."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.privilege.tradeoff import Point

WIDTH: Final = 340
HEIGHT: Final = 250
LEFT, RIGHT, TOP, BOTTOM = 56, 22, 36, 44
BLUE: Final = "#0b6e99"
GREY: Final = "#8a8a8a"


def drawing(points: Sequence[Point], below: str) -> str:
    """Return the drawing: names granted in vain, and foresight, against the number of ACLs."""
    panels = [
        _panel(points, "names granted in vain, for each used", lambda point: point.excess, 0),
        _panel(points, "share of later new accesses allowed", lambda point: point.foresight, WIDTH),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT + 24}" '
        f'font-family="sans-serif" font-size="11" fill="{GREY}">'
    )
    foot = _text(WIDTH, HEIGHT + 14, below)
    return "\n".join([head, *panels, foot, "</svg>"]) + "\n"


def _panel(points: Sequence[Point], title: str, value: Callable[[Point], float], across: int) -> str:
    most = _round(max(point.acls for point in points))
    highest = _round(max(0.01, *(value(point) for point in points)))
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def place(acls: float, height: float) -> tuple[float, float]:
        x = across + LEFT + acls / most * (right - LEFT)
        return x, bottom - height / highest * (bottom - TOP)

    parts = [_text(across + (LEFT + right) / 2, 18, title, size=12)]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = place(most * share, highest * share)
        parts.append(_line(across + LEFT, y, across + right, y))
        parts.append(_text(across + LEFT - 6, y + 4, f"{highest * share:g}", anchor="end"))
        parts.append(_text(x, bottom + 16, f"{most * share:,.0f}"))
    parts.append(_text(across + (LEFT + right) / 2, bottom + 32, "ACLs"))
    places = [place(point.acls, value(point)) for point in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>')
    taken: list[tuple[float, float]] = []
    for point, (x, y) in zip(points, places, strict=True):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{BLUE}"/>')
        if all(abs(x - other) > 24 or abs(y - height) > 12 for other, height in taken):
            words = "∞" if point.weight == float("inf") else f"{point.weight:g}"
            parts.append(_text(x + 5, y - 6, words, anchor="start"))
            taken.append((x, y))
    return "\n".join(parts)


def _round(value: float) -> float:
    """Return the next number above that quarters of it read well of."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(decade * factor for factor in (1, 2, 3, 4, 6, 8, 10) if decade * factor >= value)


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    place = f'x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"'
    return f'<line {place} stroke="{GREY}" stroke-opacity="0.3"/>'


def _text(x: float, y: float, words: str, *, anchor: str = "middle", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{words}</text>'
