"""The node: settings and composition root, the only place that wires the packages together."""

from kustos.server.main import serve
from kustos.server.node import Node
from kustos.server.running import run_until

__all__ = [
    "Node",
    "run_until",
    "serve",
]
