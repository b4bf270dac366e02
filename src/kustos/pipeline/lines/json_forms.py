"""Lines of JSON in one form, read in columns: the same names in the same order and spacing, other values.

Theory of operation. What writes a log writes each line alike. One line is the model: cut at its marks, the
commas before a name, it gives the text before and after each value. A line with as many marks, and with the
model's text at all these places, is the model with other values, if what lies between is valid JSON by
itself. Values that are the model's are compared and no more, a few different ones are parsed once each as
`json_grammar` does, and many different ones must be text without a quote or an escape, plain digits, or null.
A line that differs in any of this is not read here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kustos.pipeline.lines.json_grammar import typed_value
from kustos.pipeline.lines.json_values import MalformedError, read_object
from kustos.pipeline.lines.text_pieces import Marks, Numbers, Text
from kustos.pipeline.schemas import EVENT_SCHEMA, relaxed

_SCHEMA: Final = relaxed(EVENT_SCHEMA)
EVENT: Final = pa.struct(list(to_arrow_schema(_SCHEMA)))
"""A decision, all fields of which may be null."""

MODEL_CHARACTERS_MAX: Final = 65_536
"""A longer line is no model: it is rare, and finding its values costs less than reading them."""

SAMPLE: Final = 16
"""Lines by which a value is expected to be that of all lines, which is then checked."""

SAMPLED_VALUES: Final = 256
DISTINCT_SHARE: Final = 4
"""Different values are parsed once each if they are at most a fourth of these, and then of all."""

_DIGITS_MAX: Final = {pa.int32(): 9, pa.int64(): 18}
"""Whole numbers of so many digits fit into the type, whatever they are."""

_QUOTE, _COMMA, _SPACE, _BACKSLASH, _ZERO, _NINE = b'", \\09'
_NULL: Final = b"null"

_PIECE: Final = re.compile(
    rb'(?P<before>[,{ ]*(?:"(?P<name>[^"\\]*)" ?: ?[{ ]*)+)'
    rb'(?:"[^"\\]*"|-?[0-9]+|true|false|null)'
    rb"(?P<after>[} ]*)"
)

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of a value in a form: its path, the text before and after it, and what the model has there.

    `piece` is the model's text from a mark to the next one, `value` what its value means.
    """

    path: _Path
    before: bytes
    after: bytes
    piece: bytes
    value: Any


@dataclass(frozen=True, slots=True)
class LineForm:
    """A form of lines: the places of their values, between marks; `is_spaced`: these have a space."""

    places: tuple[_Place, ...]
    is_spaced: bool

    @classmethod
    def of(cls, line: str) -> Self | None:
        """Return the form of a line; None if it is of a kind that is not read here."""
        if len(line) > MODEL_CHARACTERS_MAX or "\\" in line or not line.isprintable():
            return None
        try:
            values = list(_values_by_path(read_object(line), _SCHEMA))
        except MalformedError:
            return None
        is_spaced = ', "' in line
        pieces = [_PIECE.fullmatch(each) for each in _cut(line.encode(), b', "' if is_spaced else b',"')]
        if len(pieces) != len(values):
            return None
        places = []
        for (path, value), piece in zip(values, pieces, strict=True):
            if piece is None or piece["name"].decode() != path[-1]:
                return None
            places.append(_Place(path, piece["before"], piece["after"], piece[0], value))
        return cls(tuple(places), is_spaced)

    def read(self, texts: pa.Array) -> tuple[Numbers, pa.StructArray]:
        """Return the numbers of lines that have this form, and their EVENT.

        `texts` are strings, none of them null, each beginning with a brace.
        """
        text = Text.of(texts)
        marks = self._marks(text)
        has_form = marks.counts == len(self.places) - 1
        has_form[_rows_with_odd_bytes(text)] = False
        rows = np.flatnonzero(has_form)
        if not len(rows):
            return rows, pa.array([], EVENT)
        bounds = np.vstack([text.starts[rows], marks.of(rows, len(self.places) - 1), text.ends[rows]])
        constant, has_form = self._compared(text, bounds)
        if not has_form.all():
            rows, bounds = rows[has_form], bounds[:, has_form]
        columns: dict[_Path, pa.Array] = {}
        is_valid: Numbers = np.ones(len(rows), dtype=bool)
        for number, place in enumerate(self.places):
            if number in constant:
                columns[place.path] = pa.repeat(pa.scalar(place.value, _type_of(place.path)), len(rows))
                continue
            starts, ends = bounds[number] + len(place.before), bounds[number + 1] - len(place.after)
            columns[place.path], is_value = _values(text, starts, ends, place.path)
            is_valid &= is_value
        events = _nested(EVENT, (), columns, len(rows))
        if is_valid.all():
            return rows, events
        return rows[is_valid], events.filter(pa.array(is_valid))

    def _marks(self, text: Text) -> Marks:
        places = np.flatnonzero(text.data == _COMMA)
        after = text.at(places + 1)
        if self.is_spaced:
            return Marks(text, places[(after == _SPACE) & (text.at(places + 2) == _QUOTE)])
        return Marks(text, places[after == _QUOTE])

    def _compared(self, text: Text, bounds: Numbers) -> tuple[set[int], Numbers]:
        """Return the places where all lines have the model's value, and which lines have the form."""
        lengths = np.diff(bounds, axis=0)
        shortest = np.array([len(place.before) + len(place.after) + 1 for place in self.places])
        has_form: Numbers = np.all(lengths >= shortest[:, None], axis=0)
        own = np.array([len(place.piece) for place in self.places])
        usual = np.flatnonzero((lengths == own[:, None]).all(axis=1)).tolist()
        usual = [number for number in usual if self._is_usual(text, bounds[number], number)]
        constant: set[int] = set()
        for run in _runs(usual):
            if text.has(bounds[run[0]], b"".join(self.places[number].piece for number in run)).all():
                constant.update(run)
        for number, place in enumerate(self.places):
            if number not in constant:
                has_form &= text.has(bounds[number], place.before)
                has_form &= text.has(bounds[number + 1] - len(place.after), place.after)
        return constant, has_form

    def _is_usual(self, text: Text, starts: Numbers, number: int) -> bool:
        """Return whether a sample of lines has the model's piece, in place of one as long."""
        return bool(text.has(starts[:: max(1, len(starts) // SAMPLE)], self.places[number].piece).all())


def _cut(line: bytes, mark: bytes) -> Iterator[bytes]:
    """Yield the pieces of a line; each but the first begins with a mark."""
    start = 0
    while (end := line.find(mark, start + 1)) > 0:
        yield line[start:end]
        start = end
    yield line[start:]


def _values_by_path(values: Mapping[str, Any], schema: StructType) -> Iterator[tuple[_Path, Any]]:
    """Yield the path of each value and what it means, in the order of the text.

    Raises `MalformedError` for a value of a wrong type, or an unknown name.
    """
    for name, value in values.items():
        if name not in schema.names:
            raise MalformedError
        kind = schema[name].dataType
        if isinstance(value, dict) and isinstance(kind, StructType):
            yield from (((name, *path), inner) for path, inner in _values_by_path(value, kind))
        else:
            yield (name,), typed_value(value, kind)


def _runs(numbers: Iterable[int]) -> Iterator[list[int]]:
    """Yield ascending numbers in runs of adjacent ones."""
    for _, run in groupby(enumerate(numbers), key=lambda one: one[1] - one[0]):
        yield [number for _, number in run]


def _rows_with_odd_bytes(text: Text) -> Numbers:
    """Return the lines with a backslash or a control character; between values these are valid, but rare."""
    is_odd = text.data == _BACKSLASH
    if text.data.min() < _SPACE:
        is_odd |= text.data < _SPACE
    elif not is_odd.any():
        return np.array([], np.int64)
    return text.rows_of(np.flatnonzero(is_odd))


def _values(text: Text, starts: Numbers, ends: Numbers, path: _Path) -> tuple[pa.Array, Numbers]:
    """Return the values between these bounds, and which of them are surely right."""
    sample = text.between(starts[:SAMPLED_VALUES], ends[:SAMPLED_VALUES])
    if len(pc.unique(sample)) * DISTINCT_SHARE <= len(sample):
        coded = text.between(starts, ends).dictionary_encode()
        if len(coded.dictionary) * DISTINCT_SHARE <= len(starts):
            values, are_valid = _parsed(coded.dictionary.to_pylist(), path)
            found = pa.array(values, _type_of(path)).take(coded.indices)
            return found, np.array(are_valid, dtype=bool)[coded.indices.to_numpy()]
    is_null = (ends - starts == len(_NULL)) & text.has(starts, _NULL)
    kind = _type_of(path)
    if kind == pa.string():
        return _texts(text, starts, ends, is_null)
    if kind in _DIGITS_MAX:
        return _numbers(text, starts, ends, is_null, kind)
    return pa.nulls(len(starts), kind), is_null


def _parsed(texts: list[str], path: _Path) -> tuple[list[Any], list[bool]]:
    """Return what each text means as the value of a field, and whether it is one."""
    kind: Any = _SCHEMA
    for name in path:
        kind = kind[name].dataType
    values, are_valid = [], []
    for text in texts:
        value = None
        try:
            found = read_object(f'{{"value":{text}}}')
            is_valid = len(found) == 1  # a text with a comma may be more than a value
            value = typed_value(found["value"], kind) if is_valid else None
        except MalformedError:
            is_valid = False
        values.append(value)
        are_valid.append(is_valid)
    return values, are_valid


def _texts(text: Text, starts: Numbers, ends: Numbers, is_null: Numbers) -> tuple[pa.Array, Numbers]:
    """Return quoted texts without their quotes."""
    is_quoted = (ends - starts >= 2) & (text.at(starts) == _QUOTE) & (text.at(ends - 1) == _QUOTE)
    found = text.between(starts + is_quoted, np.where(is_quoted, ends - 1, starts), ~is_quoted)
    is_quoted[Text.of(found).rows_of(np.flatnonzero(Text.of(found).data == _QUOTE))] = False
    return found, is_quoted | is_null


def _numbers(
    text: Text, starts: Numbers, ends: Numbers, is_null: Numbers, kind: pa.DataType
) -> tuple[pa.Array, Numbers]:
    """Return whole numbers from 0 up."""
    lengths = ends - starts
    is_number = (lengths == 1) | ((lengths <= _DIGITS_MAX[kind]) & (text.at(starts) != _ZERO))
    written = Text.of(text.between(starts, np.where(is_number, ends, starts)))
    is_number[written.rows_of(np.flatnonzero((written.data < _ZERO) | (written.data > _NINE)))] = False
    digits = text.between(starts, np.where(is_number, ends, starts), ~is_number)
    return digits.cast(kind), is_number | is_null


def _type_of(path: _Path) -> pa.DataType:
    kind = EVENT
    for name in path:
        kind = kind.field(name).type
    return kind


def _nested(
    kind: pa.StructType, path: _Path, columns: Mapping[_Path, pa.Array], count: int
) -> pa.StructArray:
    """Return structs of the columns below a path, nulls for those that are not there."""
    found = []
    for field in kind:
        inner = (*path, field.name)
        if inner in columns:
            found.append(columns[inner])
        elif any(other[: len(inner)] == inner for other in columns):
            found.append(_nested(field.type, inner, columns, count))
        else:
            found.append(pa.nulls(count, field.type))
    return pa.StructArray.from_arrays(found, fields=list(kind))
