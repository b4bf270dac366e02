"""Reach: what one compromised principal can access, separation of duties, and data flows."""

from kustos.pipeline.reach.broken_rules import BROKEN_DUTY, BROKEN_POLICY, rule_findings
from kustos.pipeline.reach.duties import Breach, Duty, breaches, parse_duties
from kustos.pipeline.reach.escalation import BlastRadius, Escalation, Means, Step, Token, blast_radius
from kustos.pipeline.reach.export import collected, to_dot, to_graphml, to_json
from kustos.pipeline.reach.frames import (
    REACH_SCHEMA,
    REACHED_RESOURCE_SCHEMA,
    reach,
    reach_by_principal,
    reached_resources,
)
from kustos.pipeline.reach.graph import EDGE_SCHEMA, PATH_SCHEMA, VERTEX_SCHEMA, edges, flow_paths, vertices

__all__ = [
    "BROKEN_DUTY",
    "BROKEN_POLICY",
    "EDGE_SCHEMA",
    "PATH_SCHEMA",
    "REACHED_RESOURCE_SCHEMA",
    "REACH_SCHEMA",
    "VERTEX_SCHEMA",
    "BlastRadius",
    "Breach",
    "Duty",
    "Escalation",
    "Means",
    "Step",
    "Token",
    "blast_radius",
    "breaches",
    "collected",
    "edges",
    "flow_paths",
    "parse_duties",
    "reach",
    "reach_by_principal",
    "reached_resources",
    "rule_findings",
    "to_dot",
    "to_graphml",
    "to_json",
    "vertices",
]
