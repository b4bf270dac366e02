"""Generates the source of readers that skip a struct: they find one of its fields, and its end.

They take a third of the time of a full reader, which creates objects and proves that the encoding is
canonical. Skipped bytes must not be forwarded, because they were not validated.
"""

from collections.abc import Sequence
from typing import Any

from kustos.wire.generate import FIXED, read_length, read_scalar
from kustos.wire.schemas import Field
from kustos.wire.source import Source


def make_outliner(
    fields: Sequence[Field], name: str, namespace: dict[str, Any], flexible: bool, at: str | None = None
) -> None:
    """Put `skip_<name>` into the namespace, or with `at` `outline_<name>`: they find the end of a struct.

    `outline_<name>` returns (the value of the field `at`, position), `skip_<name>` the position. Skipped
    bytes are not checked, so they must not be forwarded.
    """
    source = Source(namespace, flexible)
    for field in (field for field in fields if field.tag is None):
        if field.name == at:
            read_scalar(source, field, "found", field.nullable, flexible)
        else:
            _skip_field(source, field)
    if flexible:
        source.add("tags = buf[pos]; pos += 1")
        source.add("if tags > 127: tags, pos = uvarint_tail(buf, pos, tags)")
        source.add("unknown[0] -= tags", "if unknown[0] < 0: too_many()", "for _tag in range(tags):")
        source.add("    _, pos = uvarint(buf, pos)", "    size, pos = uvarint(buf, pos)", "    pos += size")
    source.add("if pos > end: short('the message ends inside a struct')")
    source.add("return pos" if at is None else "return found, pos")
    function = f"skip_{name}" if at is None else f"outline_{name}"
    namespace[function] = source.compile(f"{function}(buf, pos, end, unknown)")


def _skip_field(source: Source, field: Field) -> None:
    sizes = {"bool": 1, "uuid": 16} | {kind: size for kind, (_, size) in FIXED.items()}
    size = sizes.get(field.kind)
    if not field.is_array and size is not None:
        source.add(f"pos += {size}")
        return
    if not field.is_array and field.kind == "struct":
        raise ValueError(f"`{field.name}` is a struct, which no outline passes over")
    read_length(source, source.flexible, wide=field.is_array or field.kind != "string")
    if not field.is_array:
        source.add("if n > 0: pos += n")
        return
    source.add("if n > end - pos: short('an array longer than the message')")
    if size is not None:
        source.add(f"if n > 0: pos += n * {size}")
        return
    source.add("if n > 0: unknown[0] -= n", "if unknown[0] < 0: too_many()", "for _ in range(n):")
    if field.element is not None:
        source.add(f"    pos = skip_{field.element.name}(buf, pos, end, unknown)")
        return
    source.depth += 1
    read_length(source, source.flexible, wide=field.kind != "string")
    source.add("if n > 0: pos += n")
    source.depth -= 1
