"""The node's authorizer: how it is found by the settings, its life cycle, and its wiring."""

from kustos.server.authorization.authorization import StandardAuthorization

__all__ = [
    "StandardAuthorization",
]
