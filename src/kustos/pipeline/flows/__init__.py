"""Data flows: who feeds whom, by recorded reads and writes."""

from kustos.pipeline.flows.export import collected, to_dot, to_graphml, to_json
from kustos.pipeline.flows.graph import EDGE_SCHEMA, PATH_SCHEMA, VERTEX_SCHEMA, edges, flow_paths, vertices

__all__ = [
    "EDGE_SCHEMA",
    "PATH_SCHEMA",
    "VERTEX_SCHEMA",
    "collected",
    "edges",
    "flow_paths",
    "to_dot",
    "to_graphml",
    "to_json",
    "vertices",
]
