"""The search of the documentation answers what operators ask."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from testkit.npm import NODE
from testkit.paths import ROOT

ANSWERS: Final = {
    "which ACL lets bob read payments": "faq/#which-acl-lets-userbob-read-payments",
    "who used a topic in the last 90 days": "faq/#who-used-a-topic-in-the-last-90-days",
    "restart without dropping clients": "how-to/high-availability/#roll-the-nodes-without-dropping-clients",
    "restore the metadata directory": "how-to/back-up/",
    "rotate the TLS certificate": "faq/#how-do-i-rotate-the-tls-certificate",
    "why was a client denied": "faq/#why-was-a-client-denied",
    "remove unused ACLs": "how-to/remove-unused-acls/",
    "two nodes behind a load balancer": "how-to/high-availability/#two-nodes-behind-a-load-balancer",
    "schedule a nightly review": "how-to/schedule/",
    "upgrade": "how-to/upgrade/",
}
"""Question → the page or section that answers it."""

RANK_MAX: Final = 2
"""Two results are seen without scrolling, also on a phone."""


def test_each_question_of_an_operator_is_answered_by_one_of_the_first_results(tmp_path: Path) -> None:
    subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(tmp_path / "site"),
        ],
        check=True,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    printed = subprocess.run(
        [str(NODE), str(ROOT / "testkit" / "search.mjs"), str(tmp_path / "site"), *ANSWERS],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = dict(zip(ANSWERS, map(json.loads, printed.splitlines()), strict=True))
    missed = {
        question: found[question][:5]
        for question, page in ANSWERS.items()
        if page not in found[question][:RANK_MAX]
    }
    assert missed == {}
