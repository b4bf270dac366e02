"""What the person at the terminal reads: numbered steps, commands, expected and actual outcomes."""

import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from demo.place import Place

MAX_WIDTH: Final = 100
"""Wider lines are hard to read, whatever the terminal has."""

INDENT: Final = 4
LABEL: Final = len("expected  ")

LEAST_SHOWN_S: Final = 0.05
"""What took less was at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an act was to give, what it gave, and how long that took."""

    expected: str
    actual: str
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether the two are the same."""
        return self.expected == self.actual


class Narrator:
    """Tells the story on a console and remembers how it went. Plain text where nobody looks on."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self.console.width = min(self.console.width, MAX_WIDTH)
        self.shorthand: dict[str, str] = {}
        """What is shown in place of long addresses and paths."""
        self.outcomes = 0
        self.surprises: list[str] = []
        self._began = time.monotonic()
        self._steps = 0

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def opening(self, place: Place) -> None:
        """Say what this is and what the shorthand means."""
        self.console.print(Text("kustos before Apache Kafka: a demo", style="bold"))
        self.console.print()
        self.console.print("Everything below really runs; outcomes are what the clients themselves heard.")
        self.console.print(f"$KUSTOS stands for {place.bootstrap}; client files are in", markup=False)
        self.console.print(f"{place.shown_folder}/clients.", markup=False)

    def addresses(self, place: Place, users: Mapping[str, str]) -> None:
        """Print where everything is and who may log in, for those who want to try."""
        self.chapter("It stays up until Ctrl-C")
        self.console.print()
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True, style="bold")
        grid.add_column(overflow="fold")
        grid.add_row("kustos", f"{place.bootstrap}  SASL_PLAINTEXT, SCRAM-SHA-256")
        grid.add_row("metrics", f"{place.http}/metrics")
        grid.add_row("Kafka", f"{place.kafka.bootstrap}  unguarded, not for clients")
        grid.add_row("report", str(place.report_page))
        grid.add_row("logins", f"{place.shown_folder}/clients/<user>.properties")
        grid.add_row("  admin", "the super user")
        for name, part in users.items():
            grid.add_row(f"  {name}", part)
        self._indented(grid)
        self.console.print()
        admin = str(place.client_file("admin"))
        here = place.shown_folder
        words = [".venv/bin/kustos", "acls", "list", "--bootstrap-server", place.bootstrap]
        for line in folded(
            shlex.join([*words, "--command-config", admin.replace(str(place.folder), here)]),
            self.console.width - INDENT,
        ):
            self._indented(Text(line, style="yellow"))

    def logs(self, place: Place) -> None:
        """Say where to look when something went otherwise."""
        self.console.print()
        for what, file in (("kustos", place.kustos_log), ("Kafka", place.kafka.output)):
            self.console.print(f"{what}'s log: {file}", markup=False, soft_wrap=True)

    def error(self, text: str) -> None:
        """Say what went wrong."""
        self.console.print(Text(f"error: {text}", style="bold red"))

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self.console.print()
        self.console.rule(Text(f" {title} ", style="bold cyan"), align="left", style="cyan")

    def step(self, title: str) -> None:
        """Begin the next numbered step."""
        self._steps += 1
        self.console.print()
        line = Text.assemble((f"{self._steps:2}. ", "bold cyan"), (title, "bold"))
        self.console.print(_hanging(line))

    def command(self, words: Sequence[str]) -> None:
        """Show a command that can be typed again."""
        for line in folded(self._shortened(shlex.join(words)), self.console.width - INDENT - 2):
            self.console.print(Text(" " * INDENT + line, style="yellow"), soft_wrap=True)

    def client(self, text: str) -> None:
        """Show what a client in this program does."""
        self._indented(Text.assemble(("> ", "yellow"), (self._shortened(text), "yellow")))

    def outcome(self, outcome: Outcome) -> None:
        """Show and count what was expected and what happened."""
        self.outcomes += 1
        good = outcome.as_expected
        mark, colour = ("ok", "green") if good else ("NOT AS EXPECTED", "red")
        self._labelled("expected", Text(outcome.expected))
        took = f"  {outcome.seconds:.1f} s" if outcome.seconds >= LEAST_SHOWN_S else ""
        self._labelled("actual", Text(outcome.actual, colour), f"  {mark}", took)
        if not good:
            self.surprises.append(f"step {self._steps}: {outcome.expected!r}, but {outcome.actual!r}")

    def note(self, text: str) -> None:
        """Say something beside the outcomes."""
        self._indented(Text(self._shortened(text), style="dim"))

    def exact(self, text: str) -> None:
        """Show text that is to be copied, whatever its length."""
        self.console.print(" " * INDENT + text, markup=False, soft_wrap=True)

    def block(self, lines: Iterable[str]) -> None:
        """Show text as it is, cut into the width."""
        for line in lines:
            text = self._shortened(line).rstrip()
            for part in Text(text).wrap(self.console, self.console.width - INDENT):
                self.console.print(Text(f"{' ' * INDENT}{part.plain.rstrip()}".rstrip()))

    def json_line(self, line: str) -> None:
        """Show one line of JSON, broken after commas only."""
        shown, room = "", self.console.width - INDENT
        for part in line.replace(",", ",\0").split("\0"):
            if shown and len(shown) + len(part) > room:
                self._indented(Text(shown))
                shown = ""
            shown += part
        self._indented(Text(shown))

    @property
    def block_columns(self) -> str:
        """How wide a table may be that is shown as a block, for the environment of its command."""
        return str(self.console.width - INDENT)

    @contextmanager
    def busy(self, doing: str) -> Iterator[None]:
        """Show on a terminal that something goes on, and for how long."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        silent = not self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=silent) as progress:
            progress.add_task(doing, total=None)
            yield

    def blank(self) -> None:
        """Leave a line."""
        self.console.print()

    def verdict(self) -> None:
        """Say how it all went."""
        self.chapter("Outcome")
        good = not self.surprises
        says = f"{self.outcomes} outcomes, {'every one' if good else 'not all'} as expected"
        self.console.print()
        self.console.print(
            Text(f"{says}; {self.elapsed_s:.0f} s", style="bold green" if good else "bold red")
        )
        for surprise in self.surprises:
            self.console.print(Text(f"  {surprise}", style="red"))

    def _labelled(self, label: str, text: Text, mark: str = "", took: str = "") -> None:
        """Show `text` after its label in as many lines as it needs, then the mark, on its line if it fits."""
        room = self.console.width - INDENT - LABEL
        lines = list(text.wrap(self.console, room))
        for line in lines:
            line.rstrip()
        if mark and len(lines[-1]) + len(mark) + len(took) > room:
            lines.append(Text())
            mark = mark.lstrip()
        lines[-1] = Text.assemble(lines[-1], (mark, f"bold {text.style}"), (took, "dim"))
        for line in lines:
            self._indented(Text.assemble((label.ljust(LABEL), "dim"), line))
            label = ""

    def _shortened(self, text: str) -> str:
        for long, short in self.shorthand.items():
            text = text.replace(long, short)
        return text

    def _indented(self, what: Text | Table | Padding) -> None:
        self.console.print(Padding(what, (0, 0, 0, INDENT), expand=False))


def _hanging(line: Text) -> Table:
    grid = Table.grid()
    grid.add_column(no_wrap=True, width=INDENT)
    grid.add_column()
    grid.add_row(line[:INDENT], line[INDENT:])
    return grid


def folded(command: str, width: int) -> list[str]:
    r"""Return the lines of a shell command, each but the last with a backslash, no word broken."""
    lines, line = [], "$"
    for word in _shell_words(command):
        if len(line) + 1 + len(word) > width - 2 and line != "$":
            lines.append(f"{line} \\")
            line = "   "
        line += f" {word}"
    return [*lines, line]


def _shell_words(command: str) -> list[str]:
    """Return the words as they are written, quotes kept, an option together with its value."""
    words: list[str] = []
    for word in shlex.split(command, posix=False):
        if words and words[-1].startswith("--") and " " not in words[-1] and not word.startswith("-"):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words
