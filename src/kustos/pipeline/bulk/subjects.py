"""Subjects as numbers, and their table rows: one prepared version of an authorizer."""

import functools
import itertools
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kustos.acl import EVERY_PRINCIPAL, ResourceType
from kustos.authorizer import OPERATIONS, RESOURCE_TYPES, StandardAuthorizer
from kustos.authorizer.index import ALLOWS, PrincipalNode
from kustos.pipeline.bulk.classes import NO_NAME, HostClasses, NameClasses
from kustos.pipeline.bulk.columns import Codes, ColumnReader, NameReader
from kustos.pipeline.bulk.table import DecisionTable, hosts_of

NO_QUESTION: Final = -1
"""The number of an invalid text, and of a null."""

_STRANGER: Final = 0
_SUPER_USER: Final = 1
_KINDS: Final = tuple(RESOURCE_TYPES.values())
_KIND_NUMBERS: Final = {name: number for number, name in enumerate(RESOURCE_TYPES)}
_BITS: Final = {name: ALLOWS[operation].bit_length() - 1 for name, operation in OPERATIONS.items()}

_KIND_BITS: Final = 3
_HOST_BITS: Final = 29

COUNTED_SUBJECTS_MAX: Final = 1 << 21
"""Up to this many possible subjects are counted in an array, which is faster; more in a hash table."""

LEAST_ROWS: Final = 8
"""Rows of a block for which a subject gets a table row, plus one for each `CLASSES_PER_ROW` of its columns:
about as many as a session decides in the time it takes to fill one."""
CLASSES_PER_ROW: Final = 4096


class BulkSubjects:
    """Reads blocks of questions and holds the decision table."""

    def __init__(self, authorizer: StandardAuthorizer, *, with_matched: bool) -> None:
        self._authorizer: Final = authorizer
        self.version: Final = authorizer.version
        nodes = authorizer.index.by_principal
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
        """Rules that decide at cells of the table, cached by the caller; cleared when rows are reassigned."""
        self._rows: Final[dict[int, int]] = {}
        self._keys: Final[list[int]] = []
        self._counts: Final[dict[int, int]] = {}
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

    def read(self, block: Any) -> "SubjectBlock":
        """Return the questions of a record batch of `QUESTION_COLUMNS` as numbers."""
        principals, hosts, operations, kinds, names = columns = [
            reader.read(column) for reader, column in zip(self._readers, block.columns, strict=True)
        ]
        if not self._is_hosted.all():
            # if no ACL of the principal depends on the host, all hosts are one class
            hosts = np.where(self._is_hosted[principals], hosts, 0)
        host_count = max(1, len(self._hosts.examples))
        # the two right-hand columns mostly are one number each, so this is cheap
        subjects = np.multiply(principals, host_count * len(_KINDS), dtype=np.int64)
        subjects = np.broadcast_to(subjects + (hosts * len(_KINDS) + kinds), block.num_rows)
        lacking = None
        if any(column.min() < 0 for column in columns):
            lacking = np.broadcast_to(functools.reduce(np.bitwise_or, columns) < 0, block.num_rows)
            subjects = np.where(lacking, 0, subjects)
        rows = self._rows_of_subjects(subjects, host_count)
        if lacking is not None:
            rows[lacking] = NO_QUESTION
        return SubjectBlock(
            rows, np.broadcast_to(operations, block.num_rows), np.broadcast_to(names, block.num_rows)
        )

    def _rows_of_subjects(self, subjects: npt.NDArray[np.int64], host_count: int) -> npt.NDArray[np.int64]:
        size = len(self._principals) * host_count * len(_KINDS)
        if size <= COUNTED_SUBJECTS_MAX:
            counts = np.bincount(subjects, minlength=size)
            distinct = np.flatnonzero(counts)
            rows = np.full(size, NO_QUESTION)
            rows[distinct] = self._rows_of(self._keys_of(distinct, host_count), counts[distinct].tolist())
            return rows.take(subjects)
        encoded = pa.array(subjects).dictionary_encode()
        places: npt.NDArray[np.int32] = encoded.indices.to_numpy()
        keys = self._keys_of(encoded.dictionary.to_numpy(), host_count)
        return self._rows_of(keys, np.bincount(places).tolist())[places]

    def _keys_of(self, subjects: npt.NDArray[np.int64], host_count: int) -> list[int]:
        """Return the keys of subjects, which stay stable when hosts are added."""
        rest, kinds = np.divmod(subjects, len(_KINDS))
        principals, hosts = np.divmod(rest, host_count)
        keys: list[int] = (((principals << _HOST_BITS | hosts) << _KIND_BITS) | kinds).tolist()
        return keys

    def _rows_of(self, keys: list[int], counts: list[int]) -> npt.NDArray[np.int64]:
        """Return the table row of each subject, -1 for those with too few questions to be worth one."""
        if len(self._counts) > COUNTED_SUBJECTS_MAX:
            self._counts.clear()
        wanted = []
        for key, count in zip(keys, counts, strict=True):
            if key not in self._rows:
                total = self._counts[key] = self._counts.get(key, 0) + count
                if total >= self._least_rows:
                    wanted.append((count, key))
        if len(self._keys) + len(wanted) > self.table.rows_max:
            # the most frequent subjects of this block are the likeliest to recur
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
        """Return a representative of a subject's key."""
        host = self._hosts.examples[key >> _KIND_BITS & (1 << _HOST_BITS) - 1]
        principal = self._principals[key >> _HOST_BITS + _KIND_BITS]
        return principal, host, _KINDS[key & (1 << _KIND_BITS) - 1]

    def example(self, row: int) -> tuple[str, str, ResourceType]:
        """Return a principal, a host and the resource type of a table row."""
        return self._parts(self._keys[row])

    def super_rows(self) -> npt.NDArray[np.bool_]:
        """Return which rows belong to super users."""
        return np.array([key >> _HOST_BITS + _KIND_BITS == _SUPER_USER for key in self._keys], bool)


class SubjectBlock:
    """Questions as numbers: the table row of the subject (or -1), the operation's bit, the name's class."""

    __slots__ = ("names", "operations", "rows")

    def __init__(self, rows: npt.NDArray[np.int64], operations: Codes, names: Codes) -> None:
        self.rows = rows
        self.operations = operations
        self.names = names


def _find_hosted(nodes: Mapping[str, Mapping[ResourceType, PrincipalNode]]) -> npt.NDArray[np.bool_]:
    """Return for each principal number whether the host matters; the last entry is for -1."""
    hosted = {
        principal: any(True for node in by_type.values() for _ in hosts_of(node))
        for principal, by_type in nodes.items()
    }
    if hosted.pop(EVERY_PRINCIPAL):
        return np.ones(len(hosted) + 3, bool)
    return np.array([False, False, *hosted.values(), False])


def _nobody(nodes: Mapping[str, object], super_users: frozenset[str]) -> str:
    """Return a principal that no ACL names."""
    return next(
        name for n in itertools.count() if (name := f"User:{n}") not in nodes and name not in super_users
    )
