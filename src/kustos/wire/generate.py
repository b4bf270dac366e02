"""Generates the source of exact readers and fast writers from schemas.

A generated reader has the shape `read_X(buf, pos, end, unknown) -> (struct, position)`. The first entry of
`unknown` is the number of array elements and tagged fields that may still be read, at all depths; the reader
appends tags that are not in the schema. A generated writer has the shape `write_X(s, out)` and appends to a
bytearray. One `struct` call reads or writes adjacent fields of fixed width. Readers may raise IndexError,
struct.error and UnicodeDecodeError, which the codec translates.

Functions in parts, `read_X_in_parts(.., pause)` and `write_X_in_parts(.., pause)`, are generators of the same
code. They decrement the first entry of `pause` for each array element, and yield when it reaches zero.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kustos.wire.schemas import Field
from kustos.wire.source import Source

FIXED: Final = {
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "error_code": ("h", 2),
    "timedelta_i32": ("i", 4),
    "timedelta_i64": ("q", 8),
    "datetime_i64": ("q", 8),
}

_IMMUTABLE: Final = (int, str, bytes, float, type(None))
"""Immutable values that all structs may share."""

STRING_SIZE_MAX_BYTES: Final = 0x7FFF
"""Kafka's generated readers and writers refuse longer strings, even if the encoding allows them."""


def read_length(source: Source, compact: bool, wide: bool) -> None:
    """Leave the length in `n`, -1 for null."""
    if compact:
        source.add("n = buf[pos]; pos += 1", "if n > 127: n, pos = uvarint_tail(buf, pos, n)", "n -= 1")
    else:
        code, size = ("i", 4) if wide else ("h", 2)
        source.add(f"n = {source.packer(code)}.unpack_from(buf, pos)[0]; pos += {size}")
        source.add("if n < -1: bad('a negative length')")


def read_scalar(source: Source, field: Field, target: str, nullable: bool, compact: bool) -> None:
    """Leave one value of the field, or of its elements, in `target`."""
    kind = field.kind
    if kind in FIXED:
        code, size = FIXED[kind]
        source.add(f"{target} = {source.packer(code)}.unpack_from(buf, pos)[0]; pos += {size}")
    elif kind == "bool":
        source.add("n = buf[pos]; pos += 1", "if n > 1: bad('a boolean that is neither 0 nor 1')")
        source.add(f"{target} = n == 1")
    elif kind == "uuid":
        source.add("if pos + 16 > end: short('the message ends inside a UUID')")
        source.add(f"{target} = buf[pos:pos + 16]; pos += 16")
    elif kind == "struct":
        read = source.call("read", field.element.name, "buf, pos, end, unknown")  # type: ignore[union-attr]
        if nullable:
            source.add("n = buf[pos]; pos += 1", "if n == 255: pass", "elif n != 1: bad('a struct mark')")
            source.add(f"if n == 255: {target} = None")
            source.add(f"else: {target}, pos = {read}")
        else:
            source.add(f"{target}, pos = {read}")
    else:
        read_length(source, compact, wide=kind != "string")
        decode = ".decode()" if kind == "string" else ""
        if compact and kind == "string":
            source.add(f"if n > {STRING_SIZE_MAX_BYTES}: bad('`{field.name}` is longer than Kafka reads')")
        source.add("if n < 0:")
        source.add(f"    {target} = None" if nullable else f"    bad('`{field.name}` is null')")
        source.add("else:")
        source.add("    e = pos + n", "    if e > end: short('the message ends inside a field')")
        source.add(f"    {target} = buf[pos:e]{decode}; pos = e")


def _read_field(source: Source, field: Field) -> None:
    target = f"s.{field.name}"
    if not field.is_array:
        read_scalar(source, field, target, field.nullable, source.flexible)
        return
    read_length(source, source.flexible, wide=True)
    source.add("if n < 0:")
    source.add(f"    {target} = None" if field.nullable else f"    bad('`{field.name}` is null')")
    source.add("else:")
    source.add("    if n > end - pos: short('an array longer than the message')")
    source.add("    unknown[0] -= n", "    if unknown[0] < 0: too_many()")
    source.add("    items = []; append = items.append")
    source.add("    for _ in range(n):")
    source.depth += 2
    if source.in_parts:
        source.add("at = pos")
    read_scalar(source, field, "item", nullable=False, compact=source.flexible)
    source.add("append(item)")
    source.count_element(field, "(pos - at)")
    source.depth -= 2
    source.add(f"    {target} = items")


def _read_tags(
    source: Source, fields: Sequence[Field], field_values: str, other_tags: Collection[int]
) -> None:
    for field in fields:
        source.add(f"s.{field.name} = {field_values}_{field.name}()")
    source.add("tags = buf[pos]; pos += 1", "if tags:")
    source.depth += 1
    source.add("if tags > 127: tags, pos = uvarint_tail(buf, pos, tags)")
    source.add("unknown[0] -= tags", "if unknown[0] < 0: too_many()")
    source.add("last = -1")
    source.add("for _tag in range(tags):")
    source.depth += 1
    source.add("tag, pos = uvarint(buf, pos)", "size, pos = uvarint(buf, pos)")
    source.add("if tag <= last: bad('tagged fields out of order')")
    source.add("last = tag", "stop = pos + size", "if stop > end: short('a tagged field beyond the message')")
    for index, field in enumerate(fields):
        source.add(f"{'if' if index == 0 else 'elif'} tag == {field.tag}:")
        source.depth += 1
        _read_field(source, field)
        source.add("if pos != stop: bad('a tagged field of a wrong size')")
        source.depth -= 1
    if other_tags:
        tags = ", ".join(map(str, sorted(other_tags)))
        branch = "elif" if fields else "if"
        source.add(f"{branch} tag in {{{tags}}}: bad('a tagged field of another version')")
    unknown = "unknown.append(tag); pos = stop"
    source.add(f"else: {unknown}" if fields or other_tags else unknown)
    source.depth -= 2


def _fixed_runs(fields: Sequence[Field]) -> Iterator[list[Field]]:
    """Group adjacent fields of fixed width, which one `struct` call reads or writes together."""
    run: list[Field] = []
    for field in fields:
        if field.kind in FIXED and not field.is_array:
            run.append(field)
            continue
        if run:
            yield run
            run = []
        yield [field]
    if run:
        yield run


def _read_fields(source: Source, fields: Sequence[Field]) -> None:
    """Read fields without tags into the struct `s`."""
    for run in _fixed_runs([field for field in fields if field.tag is None]):
        if len(run) == 1:
            _read_field(source, run[0])
            continue
        packer = source.packer("".join(FIXED[field.kind][0] for field in run))
        targets = ", ".join(f"s.{field.name}" for field in run)
        size = sum(FIXED[field.kind][1] for field in run)
        source.add(f"{targets} = {packer}.unpack_from(buf, pos); pos += {size}")


def _read_all_tags(
    source: Source, fields: Sequence[Field], name: str, other_tags: Collection[int] = ()
) -> None:
    if source.flexible:
        tagged = sorted(
            (field for field in fields if field.tag is not None), key=lambda field: field.tag or 0
        )
        _read_tags(source, tagged, f"default_{name}", other_tags)


def make_reader(
    fields: Sequence[Field],
    name: str,
    namespace: dict[str, Any],
    flexible: bool,
    other_tags: Collection[int] = (),
    in_parts: Collection[str] = frozenset(),
) -> None:
    """Put `read_<name>` into the namespace; it refuses `other_tags`, which other versions have.

    With `in_parts`, the structs that are read so, it is `read_<name>_in_parts`.
    """
    source = Source(namespace, flexible, in_parts)
    source.add(f"s = new({name})")
    _read_fields(source, fields)
    _read_all_tags(source, fields, name, other_tags)
    source.finish("read", name, "buf, pos, end, unknown", "s, pos")


def make_split_reader(
    fields: Sequence[Field], name: str, namespace: dict[str, Any], flexible: bool, at: str
) -> None:
    """Put `head_<name>` and `tail_<name>` into the namespace: readers of the parts before and after the field
    `at`.

    The head returns ((struct, length of the field), position), and leaves the field None in the struct; the
    tail gets the struct. The length counts elements or bytes, and is -1 for null.
    """
    place = next(index for index, field in enumerate(fields) if field.name == at)
    source = Source(namespace, flexible)
    source.add(f"s = new({name}); s.{at} = None")
    _read_fields(source, fields[:place])
    read_length(source, flexible, wide=True)
    if not fields[place].nullable:
        source.add(f"if n < 0: bad('`{at}` is null')")
    source.add("return (s, n), pos")
    namespace[f"head_{name}"] = source.compile(f"head_{name}(buf, pos, end, unknown)")
    source = Source(namespace, flexible)
    _read_fields(source, fields[place + 1 :])
    _read_all_tags(source, fields, name)
    source.add("return s, pos")
    namespace[f"tail_{name}"] = source.compile(f"tail_{name}(s, buf, pos, end, unknown)")


def _write_scalar(source: Source, field: Field, value: str, nullable: bool, compact: bool) -> None:
    kind = field.kind
    if kind in FIXED:
        source.add(f"out += {source.packer(FIXED[kind][0])}.pack({value})")
    elif kind == "bool":
        source.add(f"out.append(1 if {value} else 0)")
    elif kind == "uuid":
        source.add(f"if len({value}) != 16: raise ValueError('a UUID of another size than 16')")
        source.add(f"out += {value}")
    elif kind == "struct":
        write = source.call("write", field.element.name, f"{value}, out")  # type: ignore[union-attr]
        if nullable:
            source.add(f"if {value} is None: out.append(255)", f"else: out.append(1); {write}")
        else:
            source.add(write)
    else:
        _write_sized(source, field, value, nullable, compact)


def _write_sized(source: Source, field: Field, value: str, nullable: bool, compact: bool) -> None:
    """Write a string or bytes: its length, then itself."""
    is_text = field.kind == "string"
    source.add(f"v = {value}", "if v is None:")
    if not nullable:
        source.add(f"    raise ValueError('`{field.name}` is null')")
    elif compact:
        source.add("    out.append(0)")
    else:
        source.add(f"    out += {'NULL16' if is_text else 'NULL32'}")
    source.add("else:")
    if is_text:
        source.add("    v = v.encode()")
    if compact and is_text:
        source.add(f"    if len(v) > {STRING_SIZE_MAX_BYTES}: raise ValueError('`{field.name}` is too long')")
    if compact:
        source.add("    n = len(v) + 1", "    if n < 128: out.append(n)", "    else: out += put_uvarint(n)")
    else:
        source.add(f"    out += {source.packer('h' if is_text else 'i')}.pack(len(v))")
    source.add("    out += v")


def _write_field(source: Source, field: Field) -> None:
    if not field.is_array:
        _write_scalar(source, field, f"s.{field.name}", field.nullable, source.flexible)
        return
    source.add(f"items = s.{field.name}", "if items is None:")
    if not field.nullable:
        source.add(f"    raise ValueError('`{field.name}` is null')")
    else:
        source.add("    out.append(0)" if source.flexible else "    out += NULL32")
    source.add("else:")
    if source.flexible:
        source.add("    out += put_uvarint(len(items) + 1)")
    else:
        source.add(f"    out += {source.packer('i')}.pack(len(items))")
    source.add("    for item in items:")
    source.depth += 2
    if source.in_parts:
        source.add("at = len(out)")
    _write_scalar(source, field, "item", nullable=False, compact=source.flexible)
    source.count_element(field, "(len(out) - at)")
    source.depth -= 2


def _write_tags(source: Source, fields: Sequence[Field], name: str) -> None:
    tagged = sorted((field for field in fields if field.tag is not None), key=lambda field: field.tag or 0)
    if not tagged:
        source.add("out.append(0)")
    else:
        source.add("whole = out; tags = bytearray(); count = 0")
        for field in tagged:
            source.add(f"if s.{field.name} != unset_{name}_{field.name}:")
            source.depth += 1
            source.add("out = bytearray()")
            _write_field(source, field)
            source.add(f"tags += put_uvarint({field.tag}) + put_uvarint(len(out)) + out; count += 1")
            source.depth -= 1
        source.add("whole += put_uvarint(count); whole += tags")


def make_writer(
    fields: Sequence[Field],
    name: str,
    namespace: dict[str, Any],
    flexible: bool,
    in_parts: Collection[str] = frozenset(),
) -> None:
    """Put `write_<name>` into the namespace; with `in_parts` as `make_reader` does."""
    source = Source(namespace, flexible, in_parts)
    for run in _fixed_runs([field for field in fields if field.tag is None]):
        if len(run) == 1:
            _write_field(source, run[0])
            continue
        packer = source.packer("".join(FIXED[field.kind][0] for field in run))
        source.add(f"out += {packer}.pack({', '.join(f's.{field.name}' for field in run)})")
    if flexible:
        _write_tags(source, fields, name)
    source.finish("write", name, "s, out", "None")


def make_tags_writer(fields: Sequence[Field], name: str, namespace: dict[str, Any]) -> None:
    """Put `tags_<name>` into the namespace: the writer of only the tagged fields of a struct."""
    source = Source(namespace, flexible=True)
    _write_tags(source, fields, name)
    source.add("return None")
    namespace[f"tags_{name}"] = source.compile(f"tags_{name}(s, out)")


def make_init(name: str, makers: Mapping[str, Callable[[], Any]]) -> Callable[..., None]:
    """Return the `__init__` of a struct: it takes fields by name and fills in the missing ones."""
    namespace: dict[str, Any] = {"unset": object()}
    source = Source(namespace, flexible=False)
    for field, make in makers.items():
        value = make()
        is_shared = isinstance(value, _IMMUTABLE)
        namespace[f"default_{field}"] = value if is_shared else make
        default = f"default_{field}" if is_shared else f"default_{field}()"
        source.add(f"self.{field} = {default} if {field} is unset else {field}")
    source.block(
        "if unknown:",
        lambda: source.add(
            f"raise TypeError(f'{name} has no field `{{next(iter(unknown))}}` in this version')"
        ),
    )
    fields = "".join(f", {field}=unset" for field in makers)
    return source.compile(f"__init__(self{', *' if fields else ''}{fields}, **unknown)")
