"""Short turns of threads last for as long as anybody wants them."""

import gc
import sys
from contextlib import ExitStack

from kustos.runtime import collect_seldom, freeze_objects, garbage_collection_paused, short_switch_interval
from kustos.runtime.process import SHORT_SWITCH_INTERVAL_S, USUAL_SWITCH_INTERVAL_S


def test_short_turns_end_with_the_last_who_wants_them() -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(short_switch_interval())
    second.enter_context(short_switch_interval())
    first.close()
    assert round(sys.getswitchinterval(), 6) == SHORT_SWITCH_INTERVAL_S
    second.close()
    assert round(sys.getswitchinterval(), 6) == USUAL_SWITCH_INTERVAL_S


def test_the_collector_wakes_after_the_last_who_wants_it_to_rest() -> None:
    first, second = ExitStack(), ExitStack()
    assert gc.isenabled()
    first.enter_context(garbage_collection_paused())
    second.enter_context(garbage_collection_paused())
    first.close()
    assert not gc.isenabled()
    second.close()
    assert gc.isenabled()


def test_a_collector_that_was_asleep_before_stays_so() -> None:
    gc.disable()
    try:
        with garbage_collection_paused(), garbage_collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_all_objects_are_traversed_seldom() -> None:
    before = gc.get_threshold()
    collect_seldom()
    try:
        full = [0]
        gc.callbacks.append(watch := lambda phase, info: full.append(info["generation"]))
        kept = [[each] for each in range(300_000)]
        gc.callbacks.remove(watch)
        assert len(kept) == 300_000
        assert 1 in full, "young objects are traversed"
        assert 2 not in full
    finally:
        gc.set_threshold(*before)


def test_what_is_spared_is_not_looked_at_again() -> None:
    kept = [[each] for each in range(1000)]
    before = gc.get_freeze_count()
    freeze_objects()
    try:
        assert gc.get_freeze_count() >= before + len(kept)
    finally:
        gc.unfreeze()
