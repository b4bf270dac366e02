"""Runs programs bound by file permissions even if the tests run as root: drops the right to bypass them."""

import os
from collections.abc import Sequence
from typing import Final

RIGHTS: Final = ("dac_override", "dac_read_search")
"""The capabilities that let root bypass file permissions (capabilities(7))."""


def held_to_permissions(command: Sequence[str]) -> list[str]:
    """Return the command wrapped so that file modes bind it, even if we are root.

    Its child processes cannot regain the rights: they are gone from its bounding set, too.
    """
    if os.geteuid() != 0:
        return list(command)
    less = ",".join(f"-{right}" for right in RIGHTS)
    return ["setpriv", f"--bounding-set={less}", f"--inh-caps={less}", *command]
