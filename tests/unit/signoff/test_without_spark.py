"""Reviewers and auditors need no Spark: `pip install 'kustos[sign]'` is enough for them."""

import subprocess
import sys
from pathlib import Path

from kustos.acl.forms import texts_of
from kustos.cli.failures import ExitCode
from kustos.signoff import review_document, write_review
from testkit.imports import WITHOUT_SPARK
from testkit.review_documents import ACLS, WRITE_OLD, entitlement_row, keys
from testkit.review_rows import AS_OF

STEPS = (
    "decide q3.json revoke --by ann --reason left --principal User:bob --unused --yes",
    "changes q3.json --commands",
    "close q3.json --by ann",
    "close q3.json --key private.pem --out q3.jws",
    "check q3.jws --key public.pem --exit-code",
)
COMMANDS = """
from kustos.cli.run import run
for step in sys.argv[1:]:
    exit_code = run(["pipeline", "signoff", *step.split()])
    if exit_code:
        sys.exit(exit_code)
"""


def test_a_review_is_decided_closed_signed_and_verified_without_spark(tmp_path: Path) -> None:
    row = entitlement_row("User:bob", "WRITE", "old", granted_by=[texts_of(WRITE_OLD)])
    made = review_document([row], ACLS, as_of=AS_OF, dormant_days=90, created_at=AS_OF)
    (tmp_path / "q3.json").write_text(write_review(made))
    for name, key in zip(("private.pem", "public.pem"), keys("Ed25519"), strict=True):
        (tmp_path / name).write_bytes(key)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK + COMMANDS, *STEPS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.splitlines()[-1] == "1 rows: 0 keep, 1 revoke, 0 ask, 0 undecided; signed off"
