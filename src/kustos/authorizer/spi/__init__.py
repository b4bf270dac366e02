"""The interface of authorizers (KIP-504): its values and its abstract class."""

from kustos.authorizer.spi.by_type_default import PROBED_NAME, authorize_by_resource_type
from kustos.authorizer.spi.values import Decision

__all__ = [
    "PROBED_NAME",
    "Decision",
    "authorize_by_resource_type",
]
