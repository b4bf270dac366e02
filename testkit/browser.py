"""A headless Chromium that shows a page and reaches no other host."""

import shutil
import subprocess
from pathlib import Path

HEADLESS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
]


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Show a page with the given profile folder; no name resolves. Raises an error after a minute."""
    chromium = shutil.which("chromium")
    assert chromium is not None, "no chromium: apt-get install chromium"
    nowhere = "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"
    command = [chromium, *HEADLESS, nowhere, f"--user-data-dir={profile}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
