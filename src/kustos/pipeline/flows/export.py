"""A graph for other programs: GraphML, DOT and JSON, as texts.

Names are untrusted text: each is quoted. Vertices and edges are mappings with the columns of VERTEX_SCHEMA
and EDGE_SCHEMA, such as `row.asDict()` of collected rows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from kustos.pipeline.errors import ReviewError
from kustos.signoff import instant_text

EDGES_MAX: Final = 100_000
"""Edges of one file: programs cannot draw more."""

Rows = Sequence[Mapping[str, Any]]

_ATTRIBUTES: Final = (("event_count", "long"), ("first_time", "string"), ("last_time", "string"))
_SHAPES: Final = {"PRINCIPAL": "ellipse", "TOPIC": "box", "GROUP": "hexagon"}


def to_json(vertices: Rows, edges: Rows) -> str:
    """Return one JSON object with `vertices` and `edges`; raise `ReviewError` for more than EDGES_MAX."""
    _check(edges)
    document = {
        "vertices": [{name: _plain(value) for name, value in row.items()} for row in vertices],
        "edges": [{name: _plain(value) for name, value in row.items()} for row in edges],
    }
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def to_graphml(vertices: Rows, edges: Rows) -> str:
    """Return a GraphML document; raise `ReviewError` for more than EDGES_MAX.

    Control characters, which XML cannot hold, stand as `\\xNN` in labels.
    """
    _check(edges)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        '  <key id="kind" for="all" attr.name="kind" attr.type="string"/>',
        '  <key id="name" for="node" attr.name="name" attr.type="string"/>',
    ]
    lines += [
        f'  <key id="{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>' for name, kind in _ATTRIBUTES
    ]
    lines.append('  <graph id="access" edgedefault="directed">')
    ids = _ids(vertices)
    for (kind, name), number in ids.items():
        lines.append(f'    <node id="n{number}">{_data("kind", kind)}{_data("name", name)}</node>')
    for row in edges:
        source, target = _ends(row, ids)
        data = "".join(_data(name, str(_plain(row[name]))) for name, _ in _ATTRIBUTES)
        head = f"    <edge source={quoteattr(f'n{source}')} target={quoteattr(f'n{target}')}>"
        lines.append(f"{head}{_data('kind', row['kind'])}{data}</edge>")
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def to_dot(vertices: Rows, edges: Rows) -> str:
    """Return a DOT digraph for Graphviz; raise `ReviewError` for more than EDGES_MAX."""
    _check(edges)
    ids = _ids(vertices)
    lines = ["digraph access {", "  rankdir=LR;"]
    for (kind, name), number in ids.items():
        lines.append(f"  n{number} [label={_dot(name)}, shape={_SHAPES.get(kind, 'plain')}];")
    for row in edges:
        source, target = _ends(row, ids)
        lines.append(
            f"  n{source} -> n{target} [label={_dot(str(row['event_count']))}, class={_dot(row['kind'])}];"
        )
    return "\n".join([*lines, "}", ""])


def _check(edges: Rows) -> None:
    if len(edges) > EDGES_MAX:
        raise ReviewError(
            f"a graph of {len(edges)} edges is too large to draw, take at most {EDGES_MAX} of them"
        )


def _ids(vertices: Rows) -> dict[tuple[str, str], int]:
    keys = sorted({(row["kind"], row["name"]) for row in vertices})
    return {key: number for number, key in enumerate(keys)}


def _ends(row: Mapping[str, Any], ids: Mapping[tuple[str, str], int]) -> tuple[int, int]:
    ends = (row["source_kind"], row["source"]), (row["target_kind"], row["target"])
    for kind, name in ends:
        if (kind, name) not in ids:
            raise ReviewError(f"an edge goes to {kind.lower()} `{name}`, which is none of the vertices")
    return ids[ends[0]], ids[ends[1]]


def _plain(value: Any) -> Any:
    return instant_text(value) if hasattr(value, "isoformat") else value


def _data(key: str, text: str) -> str:
    return f'<data key="{key}">{escape(_printable(text))}</data>'


def _printable(text: str) -> str:
    """Return a text with the characters escaped that XML 1.0 does not allow."""
    return "".join([one if _is_xml(ord(one)) else f"\\x{ord(one):02x}" for one in text])


def _is_xml(code: int) -> bool:
    return 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def _dot(text: str) -> str:
    """Return a quoted DOT string: backslashes and quotes escaped, control characters written out."""
    escaped = "".join([one if one.isprintable() else f"\\x{ord(one):02x}" for one in text])
    return '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'


def collected(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return collected Spark rows as mappings."""
    return [row.asDict() for row in rows]
