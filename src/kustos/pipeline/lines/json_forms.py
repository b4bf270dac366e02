"""Lines of JSON in one form, read in columns: the same names in the same order and spacing, other values.

Theory of operation. What writes a log writes each line alike. One line is the model: cut at its marks, the
commas before a name, it gives the text before and after each value. A sample of lines shows which values
vary. What lies between these is the same text in every line, and is compared in one piece, where the value
before it ends: a text at its next quote, any other value at its next comma, brace or space, and either after
as many bytes as it has in all lines of the sample. So a line whose pieces all follow one another up to its
end is the model with other values, if each of these is valid JSON by itself: text without a quote, an escape
or a control character, a whole number, true, false or null. A few different ones are parsed once each as
`json_grammar` does. A line that differs in any of this is not read here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kustos.pipeline.columns.codes import CODED, as_coded, coded_by, coded_fields, repeated
from kustos.pipeline.lines.json_grammar import typed_value
from kustos.pipeline.lines.json_values import MalformedError, read_object
from kustos.pipeline.lines.text_pieces import Numbers, Text, flags_of
from kustos.pipeline.schemas import EVENT_SCHEMA, relaxed

DISTINCT: Final = ("event_id",)
"""Texts with nearly no equal ones, of which codes save nothing."""

_SCHEMA: Final = relaxed(EVENT_SCHEMA)
PLAIN_EVENT: Final = pa.struct(list(to_arrow_schema(_SCHEMA)))
"""A decision, all fields of which may be null."""

EVENT: Final = pa.struct(coded_fields(list(PLAIN_EVENT), DISTINCT))
"""The same with codes in place of texts."""

MODEL_CHARACTERS_MAX: Final = 65_536
"""A longer line is no model: it is rare, and finding its values costs less than reading them."""

SAMPLE: Final = 32
"""Lines that show which values vary. Where they miss one, the next form reads the lines that differ there."""

SAMPLED_VALUES: Final = 256
DISTINCT_SHARE: Final = 4
"""Different values are parsed once each if they are at most a fourth of these, and then of all."""

_DIGITS_MAX: Final = {pa.int32(): 9, pa.int64(): 18}
"""Whole numbers of so many digits fit into the type, whatever they are."""

_QUOTE, _SPACE, _BACKSLASH, _ZERO, _NINE = b'" \\09'
_NULL: Final = b"null"
_GOLDEN: Final = 0.6180339887498949
"""Multiples of the golden section lie everywhere between whole numbers, in step with no period."""

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
    """A form of lines: the places of their values, between marks."""

    places: tuple[_Place, ...]
    mark: bytes

    @classmethod
    def of(cls, line: str) -> Self | None:
        """Return the form of a line; None if it is of a kind that is not read here."""
        if len(line) > MODEL_CHARACTERS_MAX or "\\" in line or not line.isprintable():
            return None
        try:
            values = list(_values_by_path(read_object(line), _SCHEMA))
        except MalformedError:
            return None
        mark = b', "' if ', "' in line else b',"'
        pieces = [_PIECE.fullmatch(each) for each in _cut(line.encode(), mark)]
        if len(pieces) != len(values):
            return None
        places = []
        for (path, value), piece in zip(values, pieces, strict=True):
            if piece is None or piece["name"].decode() != path[-1]:
                return None
            places.append(_Place(path, piece["before"], piece["after"], piece[0], value))
        return cls(tuple(places), mark)

    def read(self, texts: pa.Array) -> tuple[Numbers, pa.StructArray]:
        """Return the numbers of lines that have this form, and their EVENT.

        `texts` are strings, none of them null, each beginning with a brace.
        """
        text = Text.of(texts)
        varying, fixed = self._varying(texts)
        *before, last = self._between(varying)
        at, has_form = text.starts, np.ones(len(texts), dtype=bool)
        bounds = []
        for number, what in zip(varying, before, strict=True):
            has_form &= text.has(at, what)
            starts = np.where(has_form, at + len(what), text.ends)
            at = np.minimum(starts + fixed[number], text.ends) if number in fixed else _ends(text, starts)
            bounds.append((starts, at))
        has_form &= text.has(at, last) & (at + len(last) == text.ends)
        rows = np.flatnonzero(has_form)
        columns = {
            place.path: repeated(place.value, _type_of(place.path), len(rows)) for place in self.places
        }
        is_valid: Numbers = np.ones(len(rows), dtype=bool)
        for number, (starts, ends) in zip(varying, bounds, strict=True):
            path = self.places[number].path
            columns[path], is_value = _values(text, starts[rows], ends[rows], path)
            is_valid &= is_value
        events = _nested(EVENT, (), columns, len(rows))
        if is_valid.all():
            return rows, events
        return rows[is_valid], events.filter(pa.array(is_valid))

    def _varying(self, texts: pa.Array) -> tuple[list[int], dict[int, int]]:
        """Return the places where a sample of lines has another piece than the model.

        And of those where each of them has as many bytes, the number of bytes that the value has.
        """
        drawn = (np.arange(1, SAMPLE + 1) * _GOLDEN % 1 * len(texts)).astype(np.int64)
        pieces = [place.piece for place in self.places]
        found, unequal = set[int](), set[int]()
        for line in texts.take(pa.array(drawn)).cast(pa.binary()).to_pylist():
            own = list(_cut(line, self.mark))
            if len(own) == len(pieces):
                found.update(number for number, piece in enumerate(pieces) if piece != own[number])
                unequal.update(number for number in found if len(pieces[number]) != len(own[number]))
        places = [(number, self.places[number]) for number in sorted(found)]
        lengths = {number: len(each.piece) - len(each.before) - len(each.after) for number, each in places}
        return sorted(found), {number: lengths[number] for number in found - unequal}

    def _between(self, varying: Iterable[int]) -> Iterator[bytes]:
        """Yield the texts before, between and after the values of these places."""
        held, chosen = b"", set(varying)
        for number, place in enumerate(self.places):
            if number in chosen:
                yield held + place.before
                held = place.after
            else:
                held += place.piece
        yield held


def _ends(text: Text, starts: Numbers) -> Numbers:
    """Return where the values that begin there end; the end of the line where they do not."""
    is_text = text.at(starts) == _QUOTE
    quoted = np.minimum(text.first_of(b'"', starts + 1) + 1, text.ends) if is_text.any() else text.ends
    if is_text.all():
        return quoted
    ends: Numbers = np.where(is_text, quoted, text.first_of(b",} ", starts))
    return ends


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


def _values(text: Text, starts: Numbers, ends: Numbers, path: _Path) -> tuple[pa.Array, Numbers]:
    """Return the values between these bounds, and which of them are surely right."""
    pieces, kind = text.between(starts, ends), _type_of(path)
    if len(pc.unique(pieces[:SAMPLED_VALUES])) * DISTINCT_SHARE > min(len(pieces), SAMPLED_VALUES):
        values, are_valid = _read(pieces, kind)
        return as_coded(values, kind), are_valid
    coded = pieces.dictionary_encode()
    distinct = coded.dictionary
    if len(distinct) * DISTINCT_SHARE > len(pieces):
        values, are_valid = _read(pieces, kind)
        return as_coded(values, kind), are_valid
    values, are_valid = _read(distinct, kind)
    if kind == CODED:
        return coded_by(values, coded.indices), are_valid[coded.indices.to_numpy()]
    if kind != pa.string() and not are_valid.all():
        others = pa.array(~are_valid)
        parsed, are_valid[~are_valid] = _parsed(distinct.filter(others), path)
        values = pc.replace_with_mask(values, others, parsed)
    return values.take(coded.indices), are_valid[coded.indices.to_numpy()]


def _read(pieces: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Numbers]:
    """Return different values without a parser: texts, not as codes, whole numbers from 0 up, and null."""
    text = Text.of(pieces)
    is_null = flags_of(pc.equal(pieces, _NULL.decode()))
    if kind in (pa.string(), CODED):
        return _texts(text, is_null)
    if kind in _DIGITS_MAX:
        return _numbers(text, is_null, kind)
    return pa.nulls(len(pieces), kind), is_null


def _parsed(texts: pa.Array, path: _Path) -> tuple[pa.Array, Numbers]:
    """Return what each text means as the value of a field, and whether it is one."""
    kind: Any = _SCHEMA
    for name in path:
        kind = kind[name].dataType
    values, are_valid = [], []
    for text in texts.to_pylist():
        value = None
        try:
            found = read_object(f'{{"value":{text}}}')
            is_valid = len(found) == 1  # a text with a comma may be more than a value
            value = typed_value(found["value"], kind) if is_valid else None
        except MalformedError:
            is_valid = False
        values.append(value)
        are_valid.append(is_valid)
    return pa.array(values, _type_of(path)), np.array(are_valid, dtype=bool)


def _texts(text: Text, is_null: Numbers) -> tuple[pa.Array, Numbers]:
    """Return quoted texts without their quotes."""
    starts, ends = text.starts, text.ends
    is_quoted = (ends - starts >= 2) & (text.at(starts) == _QUOTE) & (text.at(ends - 1) == _QUOTE)
    found = text.between(starts + is_quoted, np.where(is_quoted, ends - 1, starts), ~is_quoted)
    inner = Text.of(found)
    is_odd = (inner.data == _QUOTE) | (inner.data == _BACKSLASH) | (inner.data < _SPACE)
    is_quoted[inner.rows_of(np.flatnonzero(is_odd))] = False
    return found, is_quoted | is_null


def _numbers(text: Text, is_null: Numbers, kind: pa.DataType) -> tuple[pa.Array, Numbers]:
    """Return whole numbers from 0 up."""
    starts, ends = text.starts, text.ends
    lengths = ends - starts
    is_number = (lengths > 0) & (lengths <= _DIGITS_MAX[kind])
    is_number &= (lengths == 1) | (text.at(starts) != _ZERO)
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
