"""What a worker keeps: a limit, the least recently used goes first, and a failure is not kept."""

import pytest

from kustos.pipeline.worker_cache import kept_in_worker


def test_the_least_recently_used_value_leaves_before_a_new_one_is_made() -> None:
    told: list[str] = []

    @kept_in_worker(2, key=lambda name, size: name, evicted=lambda left: told.append(f"without {left}"))
    def made(name: str, size: int) -> str:
        told.append(name)
        return f"{name} {size}"

    assert [made("a", 1), made("b", 2), made("a", 3)] == ["a 1", "b 2", "a 1"]
    assert made("c", 4) == "c 4"
    assert made("a", 5) == "a 1"
    assert made("b", 6) == "b 6"
    assert told == ["a", "b", "without ['b 2']", "c", "without ['c 4']", "b"]


def test_what_cannot_be_made_is_tried_again() -> None:
    tries: list[str] = []

    @kept_in_worker(1, key=lambda name: name)
    def made(name: str) -> str:
        tries.append(name)
        if len(tries) == 1:
            raise ValueError(name)
        return name

    with pytest.raises(ValueError, match="a"):
        made("a")
    assert [made("a"), made("a")] == ["a", "a"]
    assert tries == ["a", "a"]
