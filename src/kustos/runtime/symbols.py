"""States, events and other values that tables are made of."""

from enum import Enum


class Symbol(Enum):
    """An enum whose members are hashed by identity: `Enum` itself hashes their names, in Python."""

    __hash__ = object.__hash__
