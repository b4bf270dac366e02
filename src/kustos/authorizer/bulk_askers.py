"""Who asks, as numbers, and the table rows that answer them: one version of an authorizer, prepared."""

import functools
import itertools
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kustos.acl import EVERY_PRINCIPAL, ResourceType
from kustos.authorizer.bulk_columns import Codes, ColumnReader, NameReader
from kustos.authorizer.bulk_hosts import HostClasses
from kustos.authorizer.bulk_names import NO_NAME, NameClasses
from kustos.authorizer.bulk_table import DecisionTable, hosts_of, nodes_by_principal
from kustos.authorizer.cells import ALLOWS
from kustos.authorizer.index import Node
from kustos.authorizer.questions import OPERATIONS, RESOURCE_TYPES
from kustos.authorizer.standard import StandardAuthorizer

NO_QUESTION: Final = -1
"""The number of a text that makes no question, and of a null."""

_STRANGER: Final = 0
_SUPER_USER: Final = 1
_KINDS: Final = tuple(RESOURCE_TYPES.values())
_KIND_NUMBERS: Final = {name: number for number, name in enumerate(RESOURCE_TYPES)}
_BITS: Final = {name: ALLOWS[operation].bit_length() - 1 for name, operation in OPERATIONS.items()}

_KIND_BITS: Final = 3
_HOST_BITS: Final = 29

COUNTED_ASKERS_MAX: Final = 1 << 21
"""So many possible askers are counted each in its place, which is the quicker way; more in a table."""

LEAST_ROWS: Final = 8
"""Rows for which an asker gets a table row, and one more for each `CLASSES_PER_ROW` of its columns:
about as many as a session answers in the time that it takes to make one."""
CLASSES_PER_ROW: Final = 4096


class Askers:
    """Reads blocks of questions and keeps the table that answers them."""

    def __init__(self, authorizer: StandardAuthorizer, *, with_matched: bool) -> None:
        self._authorizer: Final = authorizer
        self.version: Final = authorizer.version
        nodes = nodes_by_principal(authorizer.index)
        every_node = [node for by_type in nodes.values() for node in by_type.values()]
        self.names: Final = NameClasses(
            set().union(*(node.literals for node in every_node)),
            set().union(*(node.prefixes.by_name for node in every_node)),
        )
        self._hosts: Final = HostClasses(host for node in every_node for host in hosts_of(node))
        self.table: Final = DecisionTable(authorizer, self.names, with_matched=with_matched)
        known = [principal for principal in nodes if principal != EVERY_PRINCIPAL]
        self._principals: Final = [
            _nobody(nodes, authorizer.super_users),
            min(authorizer.super_users, default=""),
            *known,
        ]
        self._numbers: Final = {principal: number for number, principal in enumerate(known, _SUPER_USER + 1)}
        self._is_hosted: Final = _find_hosted(nodes)
        self.kept_rules: Final[dict[int, str]] = {}
        """Rules that decide at places of the table, kept by who asked; gone once rows are given to others."""
        self._rows: Final[dict[int, int]] = {}
        self._keys: Final[list[int]] = []
        self._asked: Final[dict[int, int]] = {}
        self._least_rows: Final = LEAST_ROWS + self.names.count // CLASSES_PER_ROW
        self._readers: Final = (
            ColumnReader(self._principal_number, NO_QUESTION),
            ColumnReader(self._hosts.of, NO_QUESTION),
            ColumnReader(lambda text: _BITS.get(text, NO_QUESTION), NO_QUESTION),
            ColumnReader(lambda text: _KIND_NUMBERS.get(text, NO_QUESTION), NO_QUESTION),
            NameReader(self.names.of, NO_NAME),
        )

    def _principal_number(self, text: str) -> int:
        if text in self._authorizer.super_users:
            return _SUPER_USER
        number = self._numbers.get(text)
        if number is None:
            number = _STRANGER if ":" in text and text != EVERY_PRINCIPAL else NO_QUESTION
        return number

    def read(self, block: Any) -> "AskedBlock":
        """Return the questions of a record batch of `QUESTION_COLUMNS` as numbers."""
        principals, hosts, operations, kinds, names = columns = [
            reader.read(column) for reader, column in zip(self._readers, block.columns, strict=True)
        ]
        if not self._is_hosted.all():
            # where nobody is judged by the host all hosts are one
            hosts = np.where(self._is_hosted[principals], hosts, 0)
        host_count = max(1, len(self._hosts.examples))
        # the two right-hand columns mostly are one number each, so that this is little work
        askers = np.multiply(principals, host_count * len(_KINDS), dtype=np.int64)
        askers = np.broadcast_to(askers + (hosts * len(_KINDS) + kinds), block.num_rows)
        lacking = None
        if any(column.min() < 0 for column in columns):
            lacking = np.broadcast_to(functools.reduce(np.bitwise_or, columns) < 0, block.num_rows)
            askers = np.where(lacking, 0, askers)
        rows = self._rows_of_askers(askers, host_count)
        if lacking is not None:
            rows[lacking] = NO_QUESTION
        return AskedBlock(
            rows, np.broadcast_to(operations, block.num_rows), np.broadcast_to(names, block.num_rows)
        )

    def _rows_of_askers(self, askers: npt.NDArray[np.int64], host_count: int) -> npt.NDArray[np.int64]:
        size = len(self._principals) * host_count * len(_KINDS)
        if size <= COUNTED_ASKERS_MAX:
            counts = np.bincount(askers, minlength=size)
            distinct = np.flatnonzero(counts)
            rows = np.full(size, NO_QUESTION)
            rows[distinct] = self._rows_of(self._keys_of(distinct, host_count), counts[distinct].tolist())
            return rows.take(askers)
        encoded = pa.array(askers).dictionary_encode()
        places: npt.NDArray[np.int32] = encoded.indices.to_numpy()
        keys = self._keys_of(encoded.dictionary.to_numpy(), host_count)
        return self._rows_of(keys, np.bincount(places).tolist())[places]

    def _keys_of(self, askers: npt.NDArray[np.int64], host_count: int) -> list[int]:
        """Return the keys of askers, which stay the same when more hosts become known."""
        rest, kinds = np.divmod(askers, len(_KINDS))
        principals, hosts = np.divmod(rest, host_count)
        keys: list[int] = (((principals << _HOST_BITS | hosts) << _KIND_BITS) | kinds).tolist()
        return keys

    def _rows_of(self, keys: list[int], counts: list[int]) -> npt.NDArray[np.int64]:
        """Return the table row of each asker, -1 for those who asked too little to be worth one."""
        if len(self._asked) > COUNTED_ASKERS_MAX:
            self._asked.clear()
        wanted = []
        for key, count in zip(keys, counts, strict=True):
            if key not in self._rows:
                asked = self._asked[key] = self._asked.get(key, 0) + count
                if asked >= self._least_rows:
                    wanted.append((count, key))
        if len(self._keys) + len(wanted) > self.table.rows_max:
            # whoever asks most in this block is the likeliest to come again
            known = [(count, key) for key, count in zip(keys, counts, strict=True) if key in self._rows]
            wanted = sorted([*known, *wanted], reverse=True)[: self.table.rows_max]
            self._rows.clear()
            self._keys.clear()
            self.kept_rules.clear()
        for _, key in wanted:
            self._rows[key] = len(self._keys)
            self._keys.append(key)
            self._fill(key)
        return np.array([self._rows.get(key, NO_QUESTION) for key in keys], np.int64)

    def _fill(self, key: int) -> None:
        principal, host, kind = self._parts(key)
        row = self._rows[key]
        if key >> _HOST_BITS + _KIND_BITS == _SUPER_USER:
            self.table.fill_super_user(row)
        else:
            node = self._authorizer.index.nodes(principal).get(kind)
            self.table.fill(row, node, kind, host)

    def _parts(self, key: int) -> tuple[str, str, ResourceType]:
        """Return one of those whom an asker's key stands for."""
        host = self._hosts.examples[key >> _KIND_BITS & (1 << _HOST_BITS) - 1]
        principal = self._principals[key >> _HOST_BITS + _KIND_BITS]
        return principal, host, _KINDS[key & (1 << _KIND_BITS) - 1]

    def example(self, row: int) -> tuple[str, str, ResourceType]:
        """Return a principal, a host and the resource type of a table row."""
        return self._parts(self._keys[row])

    def super_rows(self) -> npt.NDArray[np.bool_]:
        """Return which rows are those of super users."""
        return np.array([key >> _HOST_BITS + _KIND_BITS == _SUPER_USER for key in self._keys], bool)


class AskedBlock:
    """Questions as numbers: the table row of the asker (or -1), the operation's bit, the name's class."""

    __slots__ = ("names", "operations", "rows")

    def __init__(self, rows: npt.NDArray[np.int64], operations: Codes, names: Codes) -> None:
        self.rows = rows
        self.operations = operations
        self.names = names


def _find_hosted(nodes: Mapping[str, Mapping[ResourceType, Node]]) -> npt.NDArray[np.bool_]:
    """Return of which numbers of principals it matters from where they ask; the last is for -1."""
    hosted = {
        principal: any(True for node in by_type.values() for _ in hosts_of(node))
        for principal, by_type in nodes.items()
    }
    if hosted.pop(EVERY_PRINCIPAL):
        return np.ones(len(hosted) + 3, bool)
    return np.array([False, False, *hosted.values(), False])


def _nobody(nodes: Mapping[str, object], super_users: frozenset[str]) -> str:
    """Return a principal of whom nothing in particular is said."""
    return next(
        name for n in itertools.count() if (name := f"User:{n}") not in nodes and name not in super_users
    )
