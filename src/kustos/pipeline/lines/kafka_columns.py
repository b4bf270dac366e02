"""Kafka's audit lines parsed in columns: the results of `kafka_grammar.read_line`, several times faster.

Theory of operation. A common line has six ` = `, and if its rule is an ACL six commas with a space. So the
spaces of a whole batch are searched at once; a line with exactly as many of these marks as its form needs is
cut there, its fixed pieces are compared with the expected words, and the others are its fields. Each phrase
that connects fields has one of the marks, so a line that passes has each phrase once and can be read in one
way. `read_line` parses every other line (an older form, a name with a mark in it, a new resource type, a
damaged line). A property test compares the results of both.
"""

import re
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kustos.acl import AclOperation, ResourceType
from kustos.pipeline.lines.kafka_grammar import (
    LOGGER,
    MAXIMUM_TIME_MS,
    PLAIN_RULES,
    SEPARATOR,
    ParsedLine,
    ParsedRule,
    local_offset_ms,
    read_line,
    spellings,
)
from kustos.pipeline.lines.known_values import WORDS
from kustos.pipeline.lines.text_pieces import (
    Marks,
    Numbers,
    Pieces,
    Text,
    codes_of,
    consists_of,
    equal_to,
    in_order,
    words_of,
)

_OTHER_TYPES: Final[dict[str, pa.DataType]] = {
    "time_ms": pa.int64(),
    "rule": pa.struct([(name, pa.string()) for name in ParsedRule._fields]),
    "reference_count": pa.int32(),
    "log_if_allowed": pa.bool_(),
    "log_if_denied": pa.bool_(),
}
PARSED_TYPE: Final = pa.struct(
    [*((name, _OTHER_TYPES.get(name, pa.string())) for name in ParsedLine._fields), ("reason", pa.string())]
)
"""The result for each line: its fields, or the `reason` why it is not an event; all null for a null."""

_SPACE, _COMMA, _EQUALS, _BRACKET, _BASED, _ALLOWED, _TOPIC, _TRANSACTIONAL = b" ,=(bATr"
_RESULTS: Final = tuple(
    f" is {result} {letter}peration = " for letter in "oO" for result in ("Allowed", "Denied")
)
_LEVELS: Final = tuple(f"{level}{pad}" for level in ("DEBUG", "INFO", "TRACE") for pad in (" ", "  "))
_OPERATIONS: Final = spellings(each for each in AclOperation if each > AclOperation.ANY)
_RESOURCES: Final = {
    f"{kind.camel_case}:LITERAL:": kind.name for kind in ResourceType if kind > ResourceType.ANY
}
_RULE: Final = " based on rule "
_ACL_STARTS: Final = tuple(f"MatchingAcl(acl=StandardAcl{bracket}resourceType=" for bracket in "[(")
_ACL_ENDS: Final = ("])", "))")
_ACL_WORDS: Final = tuple(
    f", {name}="
    for name in ("resourceName", "patternType", "principal", "host", "operation", "permissionType")
)
_HEAD: Final = len("[2026-11-21 04:26:55,815] ")
_DIGITS: Final = [at for at in range(1, _HEAD - 2) if at not in (5, 8, 11, 14, 17, 20)]
_NUMBERS: Final = ((0, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 16))
"""The first and last digit of year, month, day, hour, minute, second, milliseconds."""

_BETWEEN_DIGITS: Final = {
    place: list(characters)
    for place, characters in {
        0: b"[",
        5: b"-",
        8: b"-",
        11: b" T",
        14: b":",
        17: b":",
        20: b",.",
        24: b"]",
        25: b" ",
    }.items()
}
_SHORTEST: Final = 100
"""The length of the phrases alone: a shorter line is not of the common form."""


def _bytes_of(characters: str) -> Numbers:
    """Return for each byte whether it is in a class of characters like `A-Z_`."""
    return np.array([re.match(f"[{characters}]", chr(byte), re.ASCII) is not None for byte in range(256)])


_DIGIT = _bytes_of("0-9")
_HOST, _API = _bytes_of(r"0-9A-Za-z.:%_\-"), _bytes_of(r"0-9A-Za-z_\-")


def _prefix_lengths() -> Numbers:
    lengths = np.zeros(256, dtype=np.int32)
    for prefix in _RESOURCES:
        lengths[ord(prefix[0])] = len(prefix)
    lengths[_TOPIC] = len("Topic:LITERAL:")
    return lengths


_PREFIX_LENGTHS: Final = _prefix_lengths()
"""By the first letter; of two with the same the shorter."""


def read_lines(texts: pa.Array, time_zone: str = "UTC") -> pa.Array:
    """Return the parsed lines, as PARSED_TYPE; `texts` is of strings, valid UTF-8.

    `time_zone` (an IANA name) is that of the brokers whose lines have none.
    """
    zone = None if time_zone == "UTC" else ZoneInfo(time_zone)
    texts = without_carriage_returns(texts.cast(pa.string()))
    rows, common = _common(texts, zone)
    if len(rows) == len(texts):
        return common
    is_other = np.ones(len(texts), dtype=bool)
    is_other[rows] = False
    others = np.flatnonzero(is_other)
    parsed = _one_by_one(texts.take(pa.array(others)), zone)
    if not len(rows):
        return parsed
    return in_order(rows, common, others, parsed)


def without_carriage_returns(texts: pa.Array) -> pa.Array:
    """Return lines without carriage returns at the end; Spark's file reader leaves none, topics may."""
    has_some = pc.any(pc.ends_with(texts, "\r")).as_py()
    return pc.utf8_rtrim(texts, "\r") if has_some else texts


def _one_by_one(texts: pa.Array, zone: ZoneInfo | None) -> pa.StructArray:
    unread = (None,) * len(ParsedLine._fields)
    rows: list[tuple[object, ...] | None] = []
    for text in texts.to_pylist():
        parsed = None if text is None else read_line(text, zone)
        if parsed is None:
            rows.append((*unread, None))
        else:
            rows.append((*unread, parsed) if isinstance(parsed, str) else (*parsed, None))
    return pa.array(rows, PARSED_TYPE)


def _common(texts: pa.Array, zone: ZoneInfo | None) -> tuple[Numbers, pa.StructArray]:
    """Return the row numbers of the lines of the common form, and their parsed fields."""
    nothing = np.empty(0, dtype=np.int64), pa.array([], PARSED_TYPE)
    if not len(texts) or texts.buffers()[2] is None:
        return nothing
    text = Text.of(texts)
    spaces = np.flatnonzero(text.data == _SPACE)
    after = text.at(spaces + 1)
    equals, rules, brackets = (
        Marks(text, spaces[after == following]) for following in (_EQUALS, _BASED, _BRACKET)
    )
    commas = Marks(text, spaces[text.at(spaces - 1) == _COMMA])
    has_acl = commas.counts == len(_ACL_WORDS)
    is_candidate = (
        (text.ends - text.starts >= _SHORTEST)
        & (equals.counts == len(("principal", "operation", "host", "resource", "request", "count")))
        & (rules.counts <= 1)
        & (brackets.counts <= 1)
        & ((commas.counts == 0) | (has_acl & (rules.counts == 1)))
    )
    separators = np.flatnonzero(text.data == ord(SEPARATOR))
    is_candidate[np.searchsorted(text.starts, separators, side="right") - 1] = False
    if texts.null_count:
        is_candidate &= texts.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(is_candidate)
    if not len(rows):
        return nothing
    ends = np.where(brackets.counts[rows] == 1, brackets.of(rows, 1)[0], text.ends[rows])
    has_rule = rules.counts[rows] == 1
    rule_starts = np.where(has_rule, rules.of(rows, 1)[0], ends)
    bounds = _message_bounds(text, rows, equals.of(rows, 6), rule_starts, has_rule, ends)
    ascending = (bounds[1:] >= bounds[:-1]).all(axis=0)
    rows, bounds, has_rule = rows[ascending], bounds[:, ascending], has_rule[ascending]
    if not len(rows):
        return nothing
    pieces = Pieces.cut(text, bounds)
    is_common, columns = _message(pieces, has_rule)
    are_times, columns["time_ms"] = _times(text, text.starts[rows], zone)
    are_rules, columns["rule"] = _rules(
        text, bounds, pieces, has_rule, commas.of(rows, len(_ACL_WORDS)), has_acl[rows]
    )
    is_common &= are_times & are_rules
    arrays = [columns[field.name] for field in PARSED_TYPE]
    parsed = pa.StructArray.from_arrays(arrays, fields=list(PARSED_TYPE))
    return (rows, parsed) if is_common.all() else (rows[is_common], parsed.filter(pa.array(is_common)))


_LEVEL, _PRINCIPAL, _NAME, _RESULT, _OPERATION, _FROM, _ADDRESS, _ON, _KIND, _RESOURCE = range(10)
_FOR, _REQUEST, _WITH, _COUNT, _BASED_ON, _RULE_TEXT, _END, _PAST = range(10, 18)


def _message_bounds(
    text: Text, rows: Numbers, equals: Numbers, rule_starts: Numbers, has_rule: Numbers, ends: Numbers
) -> Numbers:
    """Return where the pieces of each line start, in their order, and where the line ends."""
    principal, operation, host, resource, request, count = equals
    after = len(" = ")
    is_allowed = text.at(operation - len("Allowed operation")) == _ALLOWED
    kind = resource + after
    letter = text.at(kind)
    lengths = _PREFIX_LENGTHS[letter]
    lengths[(letter == _TOPIC) & (text.at(kind + 1) == _TRANSACTIONAL)] = len("TransactionalId:LITERAL:")
    bounds: Numbers = np.stack(
        [
            text.starts[rows] + _HEAD,
            principal - len("Principal"),
            principal + len(" = User:"),
            operation - np.where(is_allowed, len(" is Allowed operation"), len(" is Denied operation")),
            operation + after,
            host - len(" from host"),
            host + after,
            resource - len(" on resource"),
            kind,
            kind + lengths,
            request - len(" for request"),
            request + after,
            count - len(" with resourceRefCount"),
            count + after,
            rule_starts,
            rule_starts + has_rule * len(_RULE),
            ends,
            text.ends[rows],
        ]
    )
    return bounds


def _message(pieces: Pieces, has_rule: Numbers) -> tuple[Numbers, dict[str, pa.Array]]:
    """Return which lines are valid apart from time and rule, and all other columns."""
    levels = codes_of(pieces.take(_LEVEL), _LEVELS)
    results = codes_of(pieces.take(_RESULT), _RESULTS)
    operations = codes_of(pieces.take(_OPERATION), tuple(_OPERATIONS))
    kinds = codes_of(pieces.take(_KIND), tuple(_RESOURCES))
    host, api, counts = (pieces.take(number) for number in (_ADDRESS, _REQUEST, _COUNT))
    is_common = (levels >= 0) & (results >= 0) & (operations >= 0) & (kinds >= 0)
    is_common &= (results < len(("Allowed", "Denied"))) == has_rule  # `operation` names its rule
    is_common &= equal_to(pieces.take(_PRINCIPAL), "Principal = User:")
    is_common &= equal_to(pieces.take(_FROM), " from host = ")
    is_common &= equal_to(pieces.take(_ON), " on resource = ")
    is_common &= equal_to(pieces.take(_FOR), " for request = ")
    is_common &= equal_to(pieces.take(_WITH), " with resourceRefCount = ")
    is_common &= equal_to(pieces.take(_BASED_ON), _RULE) == has_rule
    is_common &= codes_of(pieces.take(_END), (LOGGER, "")) >= 0
    is_common &= consists_of(host, _HOST) & consists_of(api, _API)
    is_number = consists_of(counts, _DIGIT) & (pc.binary_length(counts).to_numpy() <= len("999999999"))
    counts = pc.if_else(pa.array(is_number), counts, "0").cast(pa.int32())
    is_common &= is_number & (counts.to_numpy() > 0)  # a reference count of 0 may be a probe
    is_denied = (results & 1).astype(bool)
    return is_common, {
        "principal_type": pa.repeat("User", pieces.count),
        "principal_name": pieces.take(_NAME),
        "host": host,
        "api_name": api,
        "resource_type": words_of(tuple(_RESOURCES.values()), kinds, kinds < 0),
        "resource_name": pieces.take(_RESOURCE),
        "operation": words_of(tuple(_OPERATIONS.values()), operations, operations < 0),
        "decision": words_of(("ALLOWED", "DENIED"), is_denied.astype(np.int32)),
        "reference_count": counts,
        "log_if_allowed": pa.array(levels < 2, mask=is_denied),
        "log_if_denied": pa.array(levels // 2 == 1, mask=~is_denied),
        "access": words_of(("ACCESS", "LISTING"), (levels >= 4).astype(np.int32)),
        "reason": pa.nulls(pieces.count, pa.string()),
    }


def _rules(
    text: Text, bounds: Numbers, pieces: Pieces, has_rule: Numbers, commas: Numbers, has_acl: Numbers
) -> tuple[Numbers, pa.StructArray]:
    """Return which lines have a valid rule, and the rules; `commas` are those of each line."""
    plain_rows = np.flatnonzero(~has_acl)
    kinds = np.full(pieces.count, len(PLAIN_RULES), dtype=np.int32)
    kinds[plain_rows] = codes_of(pieces.take(_RULE_TEXT, plain_rows), PLAIN_RULES)
    is_common = (kinds >= 0) == has_rule
    starts, ends = bounds[_RULE_TEXT], bounds[_END]
    places = [starts, starts + len(_ACL_STARTS[0])]
    for word, comma in zip(_ACL_WORDS, commas - 1, strict=True):
        places += [comma, comma + len(word)]
    cuts = np.stack([*places, ends - len(_ACL_ENDS[0]), ends])
    is_cut = has_acl & (cuts[1:] >= cuts[:-1]).all(axis=0)
    is_common &= is_cut == has_acl
    rows = np.flatnonzero(is_cut)
    if len(rows):
        acl = Pieces.cut(text, cuts[:, rows])
        is_common[rows] &= _are_acls(acl)
        numbers = np.cumsum(is_cut) - 1
        fields = [acl.take(2 * number + 1, numbers, ~is_cut) for number in range(len(ParsedRule._fields) - 1)]
    else:
        fields = [pa.nulls(pieces.count, pa.string()) for _ in ParsedRule._fields[1:]]
    kind = words_of((*PLAIN_RULES, "MatchingAcl"), kinds, kinds < 0)
    return is_common, pa.StructArray.from_arrays([kind, *fields], names=ParsedRule._fields)


def _are_acls(acl: Pieces) -> Numbers:
    """Return which ACLs have valid words and fields."""
    is_common = (codes_of(acl.take(0), _ACL_STARTS) >= 0) & (
        codes_of(acl.take(acl.width - 2), _ACL_ENDS) >= 0
    )
    for number, word in enumerate(_ACL_WORDS, 1):
        is_common &= equal_to(acl.take(2 * number), word)
    for number, name in enumerate(ParsedRule._fields[1:]):
        field = acl.take(2 * number + 1)
        words = WORDS.get(f"rule.{name}")
        is_common &= pc.binary_length(field).to_numpy() > 0 if words is None else codes_of(field, words) >= 0
    return is_common


def _times(text: Text, starts: Numbers, zone: ZoneInfo | None) -> tuple[Numbers, pa.Array]:
    """Return which lines begin with a time without a zone, and it in milliseconds since the epoch."""
    head = text.at(starts + np.arange(_HEAD)[:, None])
    digits = head[_DIGITS] - ord("0")  # smaller bytes wrap around to more than 9
    is_time = (digits <= 9).all(axis=0)
    for place, characters in _BETWEEN_DIGITS.items():
        is_time &= np.isin(head[place], characters)
    year, month, day, hour, minute, second, milliseconds = (
        sum(digits[at].astype(np.int32) * 10 ** (last - at) for at in range(first, last + 1))
        for first, last in _NUMBERS
    )
    is_time &= (month >= 1) & (month <= 12) & (hour <= 23) & (minute <= 59) & (second <= 59)
    is_time &= year >= 1970
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    first_day, next_first = (each.astype("datetime64[D]").astype(np.int64) for each in (months, months + 1))
    is_time &= (day >= 1) & (day <= next_first - first_day)
    seconds = ((first_day + day - 1) * 24 + hour) * 3_600 + minute * 60 + second
    time_ms = seconds * 1_000 + milliseconds
    if zone is not None:
        different, places = np.unique(seconds, return_inverse=True)
        offsets = [local_offset_ms(second, zone) for second in different.tolist()]
        time_ms -= np.array(offsets, dtype=np.int64).take(places)
    is_time &= (time_ms >= 0) & (time_ms <= MAXIMUM_TIME_MS)
    return is_time, pa.array(time_ms)
