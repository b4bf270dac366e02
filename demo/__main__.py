"""Plays the demo: `make demo`, or `DEMO_ONCE=1 make demo` to have it end by itself."""

import logging
import os
import signal
import sys
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Final

from demo.cast import USERS
from demo.narrator import Narrator
from demo.place import DemoError, Place
from demo.programs import end_all
from demo.stage import Stage
from demo.story import play
from testkit.jars import JarsError
from testkit.paths import ROOT
from testkit.processes import ChildError

LOOK_INTERVAL_S: Final = 1.0
"""How often it is looked whether the servers still run."""

EXIT_OK: Final = 0
EXIT_UNEXPECTED: Final = 1
EXIT_INTERRUPTED: Final = 130


def main() -> int:
    """Play, and stay until Ctrl-C unless DEMO_ONCE is set.

    0 every outcome was as expected, 1 one was not or the demo could not go on, 130 ended amid the story.
    """
    narrator = Narrator()
    for each in (signal.SIGINT, signal.SIGTERM):
        # SIGINT too: a shell lets what it starts in the background ignore it
        signal.signal(each, _interrupt)
    try:
        place = Place(Path(os.environ.get("DEMO_OUT", ROOT / "demo-out")).resolve())
    except (DemoError, OSError) as error:
        narrator.error(str(error))
        return EXIT_UNEXPECTED
    logging.basicConfig(filename=place.clients / "clients.log", level=logging.WARNING)
    try:
        return _perform(place, narrator)
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)  # the end is under way, and bounded
        end_all()
        place.close()


def _perform(place: Place, narrator: Narrator) -> int:
    narrator.shorthand = {
        str(place.clients) + "/": "",
        str(place.folder): place.shown_folder,
        place.bootstrap: "$KUSTOS",
    }
    narrator.opening(place)
    try:
        play(Stage(place, narrator))
    except KeyboardInterrupt:
        narrator.console.print("\ninterrupted")
        return EXIT_INTERRUPTED
    except (DemoError, ChildError, JarsError, OSError) as error:
        narrator.error(str(error))
        narrator.surprises.append("the demo could not go on")
    narrator.verdict()
    if narrator.surprises:
        narrator.logs(place)
    elif not os.environ.get("DEMO_ONCE"):
        _stay(place, narrator)
    return EXIT_UNEXPECTED if narrator.surprises else EXIT_OK


def _stay(place: Place, narrator: Narrator) -> None:
    """Keep the servers up until Ctrl-C, or until one of them ends."""
    narrator.addresses(place, USERS)
    never = Event()
    try:
        while place.fallen is None:
            never.wait(LOOK_INTERVAL_S)
        narrator.surprises.append(f"{place.fallen} ended by itself")
        narrator.logs(place)
    except KeyboardInterrupt:
        narrator.console.print("\nending kustos and Kafka")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
