"""Columns of texts as Arrow's dictionaries: each different text once, and a code for each row."""

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CODED: Final = pa.dictionary(pa.int32(), pa.string())
"""The type of a column of codes."""


def coded_fields(fields: Sequence[pa.Field], plain: Collection[str] = ()) -> list[pa.Field]:
    """Return fields with codes in place of texts, within structs, too; those of `plain` stay texts."""
    return [field if field.name in plain else field.with_type(_coded(field.type)) for field in fields]


def _coded(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(coded_fields(list(kind)))
    return CODED if kind == pa.string() else kind


def as_coded(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column of texts, or structs of them, as codes where this type has them."""
    if column.type == kind:
        return column
    if kind == CODED:
        return column.dictionary_encode()
    inner = [as_coded(each, field.type) for each, field in zip(column.flatten(), kind, strict=True)]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(inner, fields=list(kind), mask=mask)


def repeated(value: Any, kind: pa.DataType, count: int) -> pa.Array:
    """Return a column of one value, or of nulls."""
    if kind != CODED:
        return pa.repeat(pa.scalar(value, kind), count)
    if value is None:
        return pa.nulls(count, kind)
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value], pa.string()))


def coded_by(texts: pa.Array, codes: pa.Array) -> pa.Array:
    """Return a column by the texts of its codes, any of which may be null."""
    if texts.null_count:
        codes = pa.array(np.arange(len(texts)), pa.int32(), mask=~_flags(texts.is_valid())).take(codes)
    return pa.DictionaryArray.from_arrays(codes, texts.fill_null(""))


def is_among(column: pa.Array, words: Sequence[str]) -> pa.Array:
    """Return whether each text of a column of codes is one of these words; null for a null."""
    return pc.is_in(column.dictionary, value_set=pa.array(words)).take(column.indices)


def _flags(column: pa.Array) -> Any:
    return column.to_numpy(zero_copy_only=False)
