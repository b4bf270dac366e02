"""Texts as codes, several columns of codes as one, and sums of rows that have the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]

_CODES_MAX: Final = 1 << 62
"""As far as a code goes in 64 bits with a sign."""

_KEY, _ROW = "_key", "_row"
OR: Final = "or"


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of texts (or days): `codes[i]` is the place of row i's in `texts`, which ends with a null."""

    codes: Codes
    texts: pa.Array

    def take(self, rows: npt.NDArray[np.int64]) -> "Coded":
        """Return these rows."""
        return Coded(self.codes[rows], self.texts)

    def is_text(self, text: str) -> npt.NDArray[np.bool_]:
        """Return for each row whether it is this text; a null is none."""
        places: npt.NDArray[np.bool_] = pc.fill_null(pc.equal(self.texts, text), False).to_numpy(
            zero_copy_only=False
        )
        return places[self.codes]

    def to_arrow(self) -> pa.DictionaryArray:
        """Return the column as Arrow's dictionary, nulls as nulls."""
        null = len(self.texts) - 1
        indices = pa.array(self.codes.astype(np.int32), mask=self.codes == null)
        return pa.DictionaryArray.from_arrays(indices, self.texts.slice(0, null))

    def decoded(self) -> pa.Array:
        """Return the texts, row by row."""
        return self.texts.take(pa.array(self.codes))


def coded(column: pa.Array) -> Coded:
    """Return a column of texts, of codes or of nulls alone as codes; values that are no texts stay theirs."""
    if pa.types.is_null(column.type):
        return Coded(np.zeros(len(column), np.int64), pa.nulls(1, pa.string()))
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    texts = column.dictionary
    if pa.types.is_large_string(texts.type) or pa.types.is_string_view(texts.type):
        texts = texts.cast(pa.string())
    null = len(texts)
    codes = column.indices.cast(pa.int64())
    if codes.null_count:
        codes = codes.fill_null(null)
    return Coded(codes.to_numpy(), pa.concat_arrays([texts, pa.nulls(1, texts.type)]))


def joined(one: Coded, separator: str, other: Coded) -> Coded:
    """Return both texts of each row as one; null where either is."""
    pairs: Codes = np.arange(len(one.texts) * len(other.texts))
    codes = combined([one, other])
    if len(pairs) > len(codes):
        pairs, codes = np.unique(codes, return_inverse=True)
    lefts, rights = np.divmod(pairs, len(other.texts))
    texts = pc.binary_join_element_wise(
        one.texts.take(pa.array(lefts)), other.texts.take(pa.array(rights)), separator
    )
    is_text = texts.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(is_text, np.cumsum(is_text) - 1, np.count_nonzero(is_text))
    return Coded(places[codes], pa.concat_arrays([texts.drop_null(), pa.nulls(1, pa.string())]))


def combined(columns: Sequence[Coded]) -> Codes:
    """Return one number a row, equal for rows that are equal in all columns.

    Of two columns it is `code of the first * texts of the second + code of the second`.
    """
    found = columns[0].codes
    count = len(columns[0].texts)
    for column in columns[1:]:
        if count * len(column.texts) > _CODES_MAX:
            distinct, codes = np.unique(found, return_inverse=True)
            found, count = codes.astype(np.int64), len(distinct)
        found = found * len(column.texts) + column.codes
        count *= len(column.texts)
    return found


def grouped(
    keys: Sequence[Coded], measures: Mapping[str, tuple[pa.Array, str]]
) -> tuple[npt.NDArray[np.int64], dict[str, pa.Array]]:
    """Return one row's number of each group of rows with equal keys, and the group's measures.

    `measures`: by name an array and how it is summed up: by `sum`, `min`, `max` or `count`, where as in SQL
    nulls do not count and a sum of nulls alone is null; or by `or`, bit by bit, of integers without nulls.
    """
    distinct = pa.array(combined(keys)).dictionary_encode()
    columns = {_KEY: distinct.indices, _ROW: pa.array(np.arange(len(distinct)))}
    columns |= {name: column for name, (column, how) in measures.items() if how != OR}
    some = pc.ScalarAggregateOptions(min_count=1)
    wanted = [(name, how, some if how == "sum" else None) for name, (_, how) in measures.items() if how != OR]
    found = pa.table(columns).group_by(_KEY, use_threads=False).aggregate([(_ROW, "min"), *wanted])
    order = found.column(_KEY).to_numpy()
    sums = {
        name: _or(column, distinct, order) if how == OR else found.column(f"{name}_{how}").combine_chunks()
        for name, (column, how) in measures.items()
    }
    return found.column(f"{_ROW}_min").to_numpy(), sums


def _or(column: pa.Array, distinct: pa.DictionaryArray, order: npt.NDArray[np.int32]) -> pa.Array:
    bits = np.zeros(len(distinct.dictionary), np.int32)
    np.bitwise_or.at(bits, distinct.indices.to_numpy(), column.to_numpy())
    return pa.array(bits[order])
