"""Deciding a table of questions, block by block.

Each row gets exactly the decision of `AuthorizerSession.decide`; a row that makes no question is an ERROR.
Rows are processed in blocks. In a block texts become numbers, names become classes, and the rights of a
subject become a row of bits, so that a decision is one table look-up. Principals with few rows are decided
one by one, by sessions.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kustos.authorizer import (
    ALLOWED,
    DEFAULT_ALLOW,
    DEFAULT_DENY,
    DENIED,
    ERROR,
    OPERATIONS,
    SUPER_USER,
    Fault,
    Questioner,
    StandardAuthorizer,
)
from kustos.authorizer.index import ALLOWS
from kustos.pipeline.bulk.columns import Codes, question_table
from kustos.pipeline.bulk.subjects import BulkSubjects, SubjectBlock

RESULTS: Final = (DENIED, ALLOWED, ERROR)
"""The dictionary of the column `result`: a decision is indexed by whether it allows."""

_ERROR_CODE: Final = RESULTS.index(ERROR)

KEPT_RULES_MAX: Final = 1 << 18
"""Table cells whose rule is cached, about 50 MB; when full, the cache is cleared."""

_OPERATION_NAMES: Final = {ALLOWS[operation].bit_length() - 1: name for name, operation in OPERATIONS.items()}

BLOCK_ROWS: Final = 1 << 20
"""Rows decided at a time: about 100 MB of numbers; the fixed cost of a block is small beside it."""


class BulkAuthorizer:
    """`authorize_many` for a sequence of tables: keeps the prepared state between them.

    Always decides by the authorizer's newest ACLs. Not thread-safe, like the authorizer itself.
    """

    def __init__(self, authorizer: StandardAuthorizer, *, with_rule: bool = False) -> None:
        self._authorizer: Final = authorizer
        self._with_rule: Final = with_rule
        self._questioner: Final = Questioner(authorizer)
        self._subjects: BulkSubjects | None = None
        self._rows_decided = 0

    def authorize(self, columns: Any) -> Any:
        """Return a table of the decisions on these questions: `result` and, if requested, `rule`."""
        texts = _Texts()
        parts: list[_Decided] = []
        for batch in question_table(columns).to_batches(max_chunksize=BLOCK_ROWS):
            decided = _Decided(batch.num_rows, with_rule=self._with_rule)
            subjects = self._prepared(batch.num_rows)
            rest = np.arange(batch.num_rows)
            if subjects is not None:
                rest = self._look_up(subjects, subjects.read(batch), decided, texts)
            if len(rest):
                self._ask_each(batch, rest, decided, texts)
            parts.append(decided)
        return _answer_table(parts, texts if self._with_rule else None)

    def _prepared(self, rows: int) -> BulkSubjects | None:
        """Return the prepared subjects, None while too few rows were decided for it to pay."""
        authorizer = self._authorizer
        if self._subjects is None or self._subjects.version != authorizer.version:
            if self._subjects is not None:
                self._rows_decided = 0
            self._subjects = None
            self._rows_decided += rows
            if authorizer.is_ready and self._rows_decided >= authorizer.acl_count:
                self._subjects = BulkSubjects(authorizer, with_matched=self._with_rule)
        return self._subjects

    def _look_up(
        self, subjects: BulkSubjects, block: SubjectBlock, decided: "_Decided", texts: "_Texts"
    ) -> npt.NDArray[np.int64]:
        """Decide the rows with subjects in the table; return the others."""
        rest = np.flatnonzero(block.rows < 0)
        rows: Any = slice(None)
        if len(rest):
            rows = np.flatnonzero(block.rows >= 0)
        places = block.rows[rows] * subjects.names.count
        places += block.names[rows]
        operations = block.operations[rows].astype(np.uint16)
        allowed = subjects.table.allowed.ravel().take(places)
        allowed >>= operations
        allowed &= 1
        decided.results[rows] = allowed
        if subjects.table.matched is not None:
            matched = subjects.table.matched.ravel().take(places) >> operations & 1
            codes = np.where(allowed, texts.code(str(DEFAULT_ALLOW.rule)), texts.code(str(DEFAULT_DENY.rule)))
            codes[subjects.super_rows()[block.rows[rows]]] = texts.code(str(SUPER_USER.rule))
            found = np.flatnonzero(matched)
            codes[found] = self._rules_at(subjects, places[found] << 4 | operations[found], texts)
            decided.rules[rows] = codes
        return rest

    def _rules_at(self, subjects: BulkSubjects, places: npt.NDArray[np.int64], texts: "_Texts") -> Codes:
        """Return the rules that decide at these cells of the table (and operations, in four bits)."""
        encoded = pa.array(places).dictionary_encode()
        kept = subjects.kept_rules
        codes: list[int] = []
        for place in encoded.dictionary.to_pylist():
            text = kept.get(place)
            if text is None:
                if len(kept) >= KEPT_RULES_MAX:
                    kept.clear()
                row, name = divmod(place >> 4, subjects.names.count)
                principal, host, kind = subjects.example(row)
                question = _OPERATION_NAMES[place & 15], kind.name, subjects.names.example(name)
                _, text = self._questioner.write(self._questioner.ask(principal, host, *question))
                kept[place] = text
            codes.append(texts.code(text))
        indices: Codes = encoded.indices.to_numpy()
        return np.array(codes, np.int32).take(indices)

    def _ask_each(
        self, batch: Any, rows: npt.NDArray[np.int64], decided: "_Decided", texts: "_Texts"
    ) -> None:
        columns = batch.take(pa.array(rows)).columns
        ask, write = self._questioner.ask, self._questioner.write
        decisions = [ask(*question) for question in zip(*map(_to_texts, columns), strict=True)]
        decided.results[rows] = [
            _ERROR_CODE if isinstance(decision, Fault) else decision.allowed for decision in decisions
        ]
        if self._with_rule:
            decided.rules[rows] = [texts.code(write(decision)[1]) for decision in decisions]


class _Decided:
    """The decisions of one block."""

    __slots__ = ("results", "rules")

    def __init__(self, rows: int, *, with_rule: bool) -> None:
        self.results = np.full(rows, _ERROR_CODE, np.int8)
        self.rules = np.zeros(rows if with_rule else 0, np.int32)


class _Texts:
    """The texts of rules, numbered in order of appearance."""

    def __init__(self) -> None:
        self.codes: Final[dict[str, int]] = {}

    def code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))


def _to_texts(column: Any) -> list[str | None]:
    texts: list[str | None] = column.to_pylist()
    return texts


def _answer_table(parts: list[_Decided], texts: _Texts | None) -> Any:
    results = pa.array(RESULTS)
    columns = {"result": [pa.DictionaryArray.from_arrays(part.results, results) for part in parts]}
    types = {"result": pa.dictionary(pa.int8(), pa.string())}
    if texts is not None:
        rules = pa.array(list(texts.codes), type=pa.string())
        columns["rule"] = [pa.DictionaryArray.from_arrays(part.rules, rules) for part in parts]
        types["rule"] = pa.dictionary(pa.int32(), pa.string())
    return pa.table({name: pa.chunked_array(columns[name], type=types[name]) for name in columns})


def authorize_many(authorizer: StandardAuthorizer, columns: Any, *, with_rule: bool = False) -> Any:
    """Return the decision on each row of a table of questions, in order.

    `columns` is an Arrow table, a record batch or a mapping of arrays, of strings or dictionaries:
    `principal`, `host`, `operation`, `resource_type` (Kafka's names) and `resource_name` (null asks about
    any resource of the type). The answer is a table of `result` (ALLOWED, DENIED, ERROR) and, if requested,
    `rule` (the text of the audit line), both dictionary-encoded. Raises `QuestionColumnError`.
    """
    return BulkAuthorizer(authorizer, with_rule=with_rule).authorize(columns)
