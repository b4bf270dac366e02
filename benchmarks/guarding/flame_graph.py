"""A flame graph of a node, drawn from the stacks that a sampling profiler found in it.

A line of stacks has the frames of one stack, outermost first, with semicolons between them, and how often it
was found. Only what says where a node's time goes is drawn: kustos' own functions, the event loop, and the
system calls. Frames of the interpreter and of the commands that started the node are left out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Final

from benchmarks.authorizing.drawing import GREY, text

WIDTH: Final = 1100
ROW: Final = 18
LEGEND: Final = 26
LEAST_SHARE: Final = 0.004
"""What took less is not drawn: nobody could see it."""

CHARACTER: Final = 6.1
"""The width of a letter, nearly."""

LETTERS_MIN: Final = 4
"""A name of fewer letters says nothing."""

LOOP: Final = "uv_run"
"""The event loop's own function: what it calls is the node's work."""

SYSTEM_CALLS: Final = frozenset(
    {"write", "writev", "sendmsg", "read", "readv", "recv", "epoll_pwait", "fsync"}
)
COLOURS: Final = {
    "kernel": "#b9b9b9",
    "event loop": "#d8d8d8",
    "listener": "#8fc1d4",
    "session": "#5fa8c4",
    "upstream": "#3f8fb0",
    "protocol": "#e2a76f",
    "wire": "#efc79b",
    "audit": "#9fc08a",
    "metrics": "#c3d9a7",
    "authorizer": "#d98c8c",
    "other": "#cfc3dd",
}
"""Packages by path; the first name that occurs in a path counts."""

OWN: Final = re.compile(r"(?P<name>.+) \(kustos/(?P<path>[^:]+):\d+\)")
NATIVE: Final = re.compile(r"(?P<name>\S+) \((?P<file>[^:)]+)(:\d+)?\)")


@dataclass(slots=True)
class Flame:
    """A function as it was called from those above; `samples` in it and in what it called."""

    name: str
    package: str
    samples: int = 0
    below: dict[str, "Flame"] = field(default_factory=dict)

    def seen(self, least: float) -> "list[Flame]":
        """Return what it called that has so many samples, in order of them."""
        below = sorted(self.below.values(), key=lambda each: -each.samples)
        return [each for each in below if each.samples >= least]

    def rows(self, least: float) -> int:
        """Return the rows that it takes with what it called."""
        return 1 + max((each.rows(least) for each in self.seen(least)), default=0)


def flame_of(lines: Iterable[str]) -> Flame:
    """Return all stacks as one flame; those that wait, with nothing of kustos in them, are left out."""
    root = Flame("the node", "other")
    for line in lines:
        stack, _, count = line.rpartition(" ")
        frames = list(shown_frames(stack.split(";")))
        if not any(package not in {"kernel", "event loop"} for _, package in frames) and LOOP not in stack:
            continue
        at = root
        at.samples += int(count)
        for name, package in frames:
            at = at.below.setdefault(name, Flame(name, package))
            at.samples += int(count)
    return root


def shown_frames(frames: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and package of each frame that is drawn; one that calls itself is drawn once."""
    starts = next((at for at, frame in enumerate(frames) if frame.startswith(f"{LOOP} ")), -1)
    before = ""
    for frame in frames[starts + 1 :]:
        name, package = named(frame)
        if name and name != before:
            yield name, package
            before = name


def named(frame: str) -> tuple[str, str]:
    """Return what a frame is called and where it belongs; no name: it is not drawn."""
    if own := OWN.fullmatch(frame):
        parts = own["path"].split("/")
        return own["name"], next((package for package in COLOURS if package in parts), "other")
    native = NATIVE.fullmatch(frame)
    if native is None:
        return "", ""
    if native["name"] in SYSTEM_CALLS and native["file"].startswith("libc"):
        return native["name"], "kernel"
    return ("event loop", "event loop") if native["file"] in {"loop.c", "stream.c", "linux.c"} else ("", "")


def drawing(root: Flame) -> str:
    """Return the flame as an SVG, the outermost calls on top."""
    least = root.samples * LEAST_SHARE
    height = root.rows(least) * ROW + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11" fill="{GREY}">',
        *boxes(root, root.samples, least, 0.0, 0),
    ]
    x = 0.0
    for package, colour in COLOURS.items():
        parts.append(f'<rect x="{x:.0f}" y="{height - 16}" width="12" height="12" fill="{colour}"/>')
        parts.append(text(x + 17, height - 6, package, "start"))
        x += 34 + CHARACTER * len(package)
    return "\n".join([*parts, "</svg>", ""])


def boxes(flame: Flame, samples: int, least: float, left: float, row: int) -> Iterator[str]:
    """Yield a box for a function, and those below it."""
    width, top = WIDTH * flame.samples / samples, row * ROW
    told = f"{flame.name}: {100 * flame.samples / samples:.1f} %"
    yield (
        f'<g><title>{escape(told)}</title><rect x="{left:.1f}" y="{top}" width="{max(width - 1, 0.5):.1f}" '
        f'height="{ROW - 1}" fill="{COLOURS[flame.package]}"/>'
    )
    room = int((width - 6) / CHARACTER)
    if room >= LETTERS_MIN:
        short = told if len(told) <= room else f"{flame.name[: room - 1]}…"
        yield text(left + 3, top + 13, short, "start", fill="#222")
    yield "</g>"
    for each in flame.seen(least):
        yield from boxes(each, samples, least, left, row + 1)
        left += WIDTH * each.samples / samples
