"""Columns of questions as numbers: each distinct text is looked up once."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kustos.authorizer import AuthorizerError


class QuestionColumnError(AuthorizerError, ValueError):
    """Missing or invalid columns of questions; the text names the column."""


QUESTION_COLUMNS: Final = ("principal", "host", "operation", "resource_type", "resource_name")

Codes = npt.NDArray[np.int32]


def question_table(columns: Any) -> Any:
    """Return the five columns as an Arrow table of strings or dictionaries of strings.

    Takes a table, a record batch or a mapping of arrays; raises `QuestionColumnError`.
    """
    try:
        table = pa.table(dict(columns)) if isinstance(columns, Mapping) else columns
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
    except pa.ArrowInvalid as error:
        raise QuestionColumnError(f"columns of questions make no table: {error}") from error
    if not isinstance(table, pa.Table):
        raise QuestionColumnError(f"a `{type(columns).__name__}` is not an Arrow table of questions")
    for name in QUESTION_COLUMNS:
        if len(table.schema.get_all_field_indices(name)) != 1:
            raise QuestionColumnError(f"questions need one column `{name}`")
    return pa.table({name: _texts(name, table.column(name)) for name in QUESTION_COLUMNS})


def _texts(name: str, column: Any) -> Any:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if pa.types.is_null(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    raise QuestionColumnError(f"column `{name}` has type `{column.type}`, cast it to string")


def _is_constant(block: Any) -> bool:
    """Return whether all values are equal; comparing three of them first mostly shows that they are not."""
    if pa.types.is_dictionary(block.type):
        block = block.indices
    first = block[0]
    if not first.is_valid or block[len(block) // 2] != first or block[-1] != first:
        return False
    return block.null_count == 0 and bool(pc.all(pc.equal(block, first)).as_py())


class ColumnReader:
    """Turns blocks of one column into numbers, by a function of texts; nulls have their own number.

    The numbers of a dictionary are kept while blocks share the same dictionary.
    """

    def __init__(self, number_of: Callable[[str], int], null: int) -> None:
        self._number_of: Final = number_of
        self._null: Final = null
        self._dictionary: Any = None
        self._numbers: Codes = np.empty(0, np.int32)

    def read(self, block: Any) -> Codes:
        """Return the number of each text of a block (an Arrow array that is not empty).

        If all texts are equal, the result is a zero-dimensional array with one number.
        """
        if _is_constant(block):
            block = block.slice(0, 1)
        encoded = block if pa.types.is_dictionary(block.type) else block.dictionary_encode()
        if not _is_same(encoded.dictionary, self._dictionary):
            self._numbers = self._numbers_of(encoded.dictionary)
            self._dictionary = encoded.dictionary
        numbers = self._numbers.take(_indices(encoded), mode="wrap")
        return numbers.reshape(()) if len(block) == 1 else numbers

    def _numbers_of(self, texts: Any) -> Codes:
        numbers = [self._null if text is None else self._number_of(text) for text in texts.to_pylist()]
        return np.array([*numbers, self._null], np.int32)


class NameReader(ColumnReader):
    """Turns blocks of names into their classes."""

    def __init__(self, classes_of: Callable[[Any], Codes], null: int) -> None:
        super().__init__(str.__len__, null)
        self._classes_of: Final = classes_of

    def read(self, block: Any) -> Codes:
        """Return the class of each name of a block."""
        return super().read(block) if pa.types.is_dictionary(block.type) else self._classes_of(block)

    def _numbers_of(self, texts: Any) -> Codes:
        return np.append(self._classes_of(texts), np.int32(self._null))


def _indices(encoded: Any) -> npt.NDArray[np.integer[Any]]:
    """Return a dictionary array's indices, -1 for nulls."""
    indices = encoded.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(-1)
    numbers: npt.NDArray[np.integer[Any]] = indices.to_numpy(zero_copy_only=False)
    return numbers


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two arrays are views of the same memory."""
    if other is None or len(one) != len(other) or one.offset != other.offset:
        return False
    return [b and b.address for b in one.buffers()] == [b and b.address for b in other.buffers()]
