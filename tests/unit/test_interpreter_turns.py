"""Short turns of threads last for as long as anybody wants them."""

import sys
from contextlib import ExitStack

from kustos.runtime import short_turns
from kustos.runtime.interpreter import SHORT_TURN_S, USUAL_TURN_S


def test_short_turns_end_with_the_last_who_wants_them() -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(short_turns())
    second.enter_context(short_turns())
    first.close()
    assert round(sys.getswitchinterval(), 6) == SHORT_TURN_S
    second.close()
    assert round(sys.getswitchinterval(), 6) == USUAL_TURN_S
