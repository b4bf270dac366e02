"""The node: settings and composition root, the only package that connects the others."""

from kustos.server.lifecycle import run_until
from kustos.server.main import serve
from kustos.server.node import Node

__all__ = [
    "Node",
    "run_until",
    "serve",
]
