"""What only happens at a terminal: hidden passwords, questions before a loss, what a refusal leaves."""

import os
import pty
import select
import signal
import sys
from collections.abc import Sequence

import pytest

from kustos.cli.failures import ExitCode

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 90.0


def converse(
    arguments: Sequence[str],
    answers: Sequence[tuple[bytes, bytes]],
    program: Sequence[str] = ("-m", "kustos"),
) -> tuple[int, str]:
    """Run `kustos` at a terminal of 80 columns, answer each prompt; return exit code and the screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["COLUMNS"] = "80"
        # a shell that runs the tests in the background lets its children ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, *program, *arguments])
    screen, seen = b"", 0
    waiting = list(answers)
    while select.select([terminal], [], [], PATIENCE_SECONDS)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other side has closed a terminal
            break
        if not data:
            break
        screen += data
        if waiting and waiting[0][0] in screen[seen:]:
            seen = len(screen)
            os.write(terminal, waiting.pop(0)[1])
    else:
        os.kill(pid, 9)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), screen.decode()


NOWHERE = ["--bootstrap-server", "127.0.0.1:1"]


def test_a_password_is_asked_for_twice_and_never_shown() -> None:
    exit_code, screen = converse(
        ["users", "add", "ann", *NOWHERE], [(b"password of `ann`:", b"s3cret\n"), (b"again:", b"s3cret\n")]
    )
    assert exit_code == ExitCode.UNREACHABLE, screen  # it went on to the cluster, which is not there
    assert "s3cret" not in screen


def test_two_different_passwords_are_refused() -> None:
    exit_code, screen = converse(
        ["users", "add", "ann", *NOWHERE], [(b"password of `ann`:", b"s3cret\n"), (b"again:", b"other\n")]
    )
    assert exit_code == ExitCode.USAGE
    assert "the two passwords differ" in screen


@pytest.mark.parametrize(
    ("answer", "exit_code"),
    [(b"n\n", ExitCode.FAILED), (b"\n", ExitCode.FAILED), (b"y\n", ExitCode.UNREACHABLE)],
)
def test_a_removal_goes_on_only_after_a_yes(answer: bytes, exit_code: ExitCode) -> None:
    ended, screen = converse(["acls", "remove", "--topic", "orders", *NOWHERE], [(b"[y/N]:", answer)])
    assert "every ACL of literal topic `orders`" in screen
    assert ended == exit_code, screen
    assert ("nothing was done" in screen) == (exit_code is ExitCode.FAILED)


def test_an_interrupt_ends_with_its_own_code() -> None:
    exit_code, screen = converse(["users", "add", "ann", *NOWHERE], [(b"password of `ann`:", b"\x03")])
    assert exit_code == ExitCode.INTERRUPTED
    assert "Traceback" not in screen


LONG_WORK = """
import sys
import kustos.cli.terminal
kustos.cli.terminal.PATIENCE_SECONDS = float(sys.argv[1])
with kustos.cli.terminal.progress("reading acls.yaml"):
    input("working ")
print("ended")
"""


def test_long_work_shows_that_it_goes_on_and_leaves_nothing_behind() -> None:
    exit_code, screen = converse(["0"], [(b"reading acls.yaml", b"\n")], ("-c", LONG_WORK))
    assert exit_code == 0, screen
    assert "reading acls.yaml" in screen
    last = screen.rpartition("\x1b[2K")[2]
    assert last.split() == ["ended"], "the display is wiped before the output"


def test_short_work_shows_nothing() -> None:
    exit_code, screen = converse(["3600"], [(b"working", b"\n")], ("-c", LONG_WORK))
    assert (exit_code, screen.split()) == (0, ["working", "ended"])
