"""Programs that permissions hold, though the tests run as root: its right to pass over them is given up."""

import os
from collections.abc import Sequence
from typing import Final

RIGHTS: Final = ("dac_override", "dac_read_search")
"""The capabilities that let root read and write what nobody may (capabilities(7))."""


def held_to_permissions(command: Sequence[str]) -> list[str]:
    """Return the command as one that may read and write just what the modes of files say, whoever we are.

    What it starts cannot take the rights back: they are gone from its bounding set, too.
    """
    if os.geteuid() != 0:
        return list(command)
    less = ",".join(f"-{right}" for right in RIGHTS)
    return ["setpriv", f"--bounding-set={less}", f"--inh-caps={less}", *command]
