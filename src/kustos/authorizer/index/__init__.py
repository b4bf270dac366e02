"""The compiled index: ACLs as bits, by principal, resource type and pattern, and the look-up of names."""

from kustos.authorizer.index.by_type import PROBED_NAME
from kustos.authorizer.index.cells import (
    ALLOWS,
    DECIDES,
    DENIES,
    DENY_SHIFT,
    EVERY_ALLOW,
    HOSTED,
    IMPLIED_OPERATIONS,
    PatternCell,
    binding_mask,
)
from kustos.authorizer.index.index import AclIndex, PrincipalNode
from kustos.authorizer.index.joints import visit_order

__all__ = [
    "ALLOWS",
    "DECIDES",
    "DENIES",
    "DENY_SHIFT",
    "EVERY_ALLOW",
    "HOSTED",
    "IMPLIED_OPERATIONS",
    "PROBED_NAME",
    "AclIndex",
    "PatternCell",
    "PrincipalNode",
    "binding_mask",
    "visit_order",
]
