"""How one step is played: its acts, at the same time if they may, each timed and told in order."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from demo.narrator import Narrator, Outcome
from demo.place import DemoError, Place
from demo.programs import Said, run

JVMS_AT_ONCE: Final = 2
"""As many as small machines have cores; each costs a second of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A command: `words` are shown and run, `typed` goes to its standard input, `heard` picks the outcome."""

    words: Sequence[str]
    expected: str
    typed: Sequence[str] | None = None
    heard: Callable[[Said], str] = lambda said: said.outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a Python client does; `shown` tells a person."""

    shown: str
    expected: str
    do: Callable[[], str]


class Stage:
    """Plays acts at a place and has them narrated."""

    def __init__(self, place: Place, narrator: Narrator) -> None:
        self.place = place
        self.say = narrator

    def step(self, title: str, *acts: Program | Call, vital: bool = False) -> None:
        """Begin a step and play its acts."""
        self.say.step(title)
        self.play(*acts, vital=vital)

    def play(self, *acts: Program | Call, vital: bool = False) -> None:
        """Play acts; where `vital`, `DemoError` ends the demo if one is not as expected.

        Programs run at the same time, beside what Python clients do in this thread.
        """
        programs = [act for act in acts if isinstance(act, Program)]
        with ThreadPoolExecutor(max_workers=JVMS_AT_ONCE) as pool:
            began = {id(act): pool.submit(self.outcome_of, act) for act in programs}
            for number, act in enumerate(acts):
                if number:
                    self.say.blank()
                if isinstance(act, Program):
                    self.say.command(act.words)
                else:
                    self.say.client(act.shown)
                outcome = began[id(act)].result() if id(act) in began else self.outcome_of(act)
                self.say.outcome(outcome)
                if not outcome.as_expected and vital:
                    raise DemoError(f"without that the demo cannot go on; see `{self.place.folder}`")

    def quiet(self, *words: str) -> Said:
        """Run a command of which only the effect matters."""
        return run(words, environment={"COLUMNS": self.say.block_columns})

    def as_admin(self, *words: str) -> list[str]:
        """Return the words of a command, with where and as whom it is to ask."""
        return self.as_user("admin", *words)

    def as_user(self, user: str, *words: str) -> list[str]:
        """Return the words of a command for a user's own properties file."""
        at = ["--bootstrap-server", self.place.bootstrap]
        return [*words, *at, "--command-config", str(self.place.client_file(user))]

    def outcome_of(self, act: Program | Call) -> Outcome:
        """Play one act in silence; whatever it raises is its outcome, never the expected one."""
        began = time.monotonic()
        columns = {"COLUMNS": self.say.block_columns}
        try:
            if isinstance(act, Program):
                actual = act.heard(run(act.words, typed=act.typed, environment=columns))
            else:
                actual = act.do()
        except Exception as error:  # noqa: BLE001  # fails closed: not as expected
            actual = f"{type(error).__name__}: {error}"
        return Outcome(expected=act.expected, actual=actual, seconds=time.monotonic() - began)
