"""The node's authorizer: its selection by the settings, its life cycle, and its connections to other
parts."""

from kustos.server.authorization.authorization import StandardAuthorization

__all__ = [
    "StandardAuthorization",
]
