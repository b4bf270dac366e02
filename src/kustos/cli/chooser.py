"""Which command answers what: the tasks of `kustos --help`, and the choice between similar commands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from typer.core import TyperGroup

TASKS: Final[dict[str, tuple[str, ...]]] = {
    "Ask who may do what": ("explain", "who-can", "what-can", "blast-radius", "decide"),
    "Check a set of ACLs": ("lint", "verify", "diff", "trial"),
    "Change ACLs and users": ("acls", "users", "minimize"),
    "Run a node": ("serve", "storage", "metadata", "features"),
    "Study recorded access": ("pipeline",),
    "Move from another system": ("migrate", "legacy"),
}
"""Task → commands, in the order of the help. Every command has one task."""


@dataclass(frozen=True, slots=True)
class CommandChoice:
    """A question with several commands that answer it, and what each of them looks at."""

    question: str
    answers: dict[str, str]


CHOICES: Final = (
    CommandChoice(
        "Would other ACLs decide otherwise?",
        {
            "diff": "all possible requests",
            "pipeline replay": "recorded requests",
            "trial": "live requests, while a node tries the other ACLs",
            "pipeline judge": "recorded decisions, by the ACLs of their time",
            "decide": "a list of requests",
        },
    ),
    CommandChoice(
        "What can be removed?",
        {
            "lint": "ACLs that decide nothing, one by one",
            "minimize": "ACLs that a smaller set with the same meaning replaces",
            "pipeline review": "rights that recorded access does not use",
            "pipeline recommend": "all ACLs that recorded access does not need",
        },
    ),
    CommandChoice(
        "Who may do what, and why?",
        {
            "explain": "one request: the rule that decides it, and its remedy",
            "who-can": "one resource: everyone who may do something with it",
            "what-can": "one principal: everything it may do",
            "blast-radius": "one stolen credential: everything it leads to",
            "metadata history": "one resource or principal: when its ACLs changed",
        },
    ),
)


def chooser_lines() -> list[str]:
    """Return the choices for `kustos --help`, at most 80 columns wide."""
    width = max(len(command) for choice in CHOICES for command in choice.answers)
    lines: list[str] = []
    for choice in CHOICES:
        # the mark keeps the help from rewrapping the paragraph
        lines += ["\b", choice.question]
        lines += [f"  {command:{width}}  {what}" for command, what in choice.answers.items()]
        lines.append("")
    return lines


def chooser_page() -> list[str]:
    """Return the choices as lines of Markdown, with links to the commands of the same page."""
    lines = ["## Which command?", ""]
    for choice in CHOICES:
        lines += [f"**{choice.question}**", "", "| command | looks at |", "|---|---|"]
        lines += [
            f"| [`kustos {command}`](#kustos-{command.replace(' ', '-')}) | {what} |"
            for command, what in choice.answers.items()
        ]
        lines.append("")
    return lines


class TaskGroup(TyperGroup):
    """A group of commands whose help lists them by task; `tasks` are those of `kustos`."""

    tasks: ClassVar[Mapping[str, tuple[str, ...]]] = TASKS

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as in the base
        """Write the commands of each task in a section of its own."""
        width = max(len(name) for names in self.tasks.values() for name in names)
        for task, names in self.tasks.items():
            with formatter.section(task):
                formatter.write_dl(self._rows(names, width, formatter.width))

    def _rows(self, names: Sequence[str], width: int, limit: int) -> list[tuple[str, str]]:
        # the padded names align the sections with each other
        room = limit - width - 4
        return [(f"{name:{width}}", self.commands[name].get_short_help_str(room)) for name in names]
