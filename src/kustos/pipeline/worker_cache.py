"""Values that a process of Spark keeps from task to task: the one mechanism for those that a key identifies.

A worker runs task after task of any queries, so what takes long to build from a set of ACLs is built once. A
key is a digest, or whatever else names a content that never changes: then nothing in a cache can be stale,
and an entry only leaves it when newer ones need the place. Pure functions of their arguments use
`functools.lru_cache`, also with a named limit.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")


def kept_in_worker(
    limit: int,
    key: Callable[_Arguments, Hashable],
    evicted: Callable[[list[_Value]], None] = lambda _: None,
) -> Callable[[Callable[_Arguments, _Value]], Callable[_Arguments, _Value]]:
    """Make a function of tasks keep its last `limit` values by their keys, the least recently used go first.

    `key` takes the arguments of the function. `evicted` gets the values that leave, in a list that it may
    clear to free them, before a new one is made: they may be large. Tasks of a process run one after the
    other, so there is no lock.
    """

    def of(function: Callable[_Arguments, _Value]) -> Callable[_Arguments, _Value]:
        kept: OrderedDict[Hashable, _Value] = OrderedDict()

        @wraps(function)
        def value_of(*args: _Arguments.args, **more: _Arguments.kwargs) -> _Value:
            name = key(*args, **more)
            if name in kept:
                kept.move_to_end(name)
                return kept[name]
            if len(kept) >= limit:
                evicted([kept.popitem(last=False)[1]])
            kept[name] = found = function(*args, **more)
            return found

        return value_of

    return of
