"""The cluster of a line: the one that its input is declared to be of, else the one that its event names.

| the input is declared | the event names | the line is of |
|---|---|---|
| no cluster | none | the unnamed cluster, an empty text |
| no cluster | a cluster | that one |
| a cluster | none, this one, or one of its ids | the declared one |
| a cluster | another one | no cluster: quarantined as `cluster_mismatch` |

A writer of one cluster's lines must not be able to add to the record of another. The declaration of an input
comes from the operator, the content of an event from its writer: so an event may name its cluster only where
the operator did not.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kustos.pipeline.errors import ConfigurationError

UNNAMED: Final = ""
"""The cluster of lines that nothing names a cluster of."""

MISMATCH: Final = "cluster_mismatch"
MALFORMED: Final = "cluster_malformed"

CLUSTER_CHARACTERS_MAX: Final = 255
_NAME: Final = re.compile(rf"[A-Za-z0-9_.:+\-]{{1,{CLUSTER_CHARACTERS_MAX}}}", re.ASCII)
"""Kafka's ids are 22 characters of URL-safe Base64; Confluent's like `lkc-1a2b3`; names of operators."""


def is_cluster_name(text: str) -> bool:
    """Return whether a text may name a cluster."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class DeclaredCluster:
    """The cluster that an input was declared to be of (None: of none), and the `ids` by which events name it.

    Raises `ConfigurationError` for a name that is none.
    """

    name: str | None = None
    ids: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.name is not None and not is_cluster_name(self.name):
            raise ConfigurationError(
                f"`{self.name}` is not a name of a cluster, take letters, digits and `._:+-`"
            )


UNDECLARED: Final = DeclaredCluster()


def clusters_of(
    own: pa.Array, declared: pa.Array, input_of: DeclaredCluster = UNDECLARED
) -> tuple[pa.Array, pa.Array | None]:
    """Return the cluster of each line, never null, and the reason to quarantine it; None: there is none.

    `own` is what the events name, `declared` what their files were declared to be of; where that is null
    `input_of` holds.
    """
    if input_of.name is not None:
        declared = pc.fill_null(declared, input_of.name)
    if own.null_count == len(own):
        return pc.fill_null(declared, UNNAMED), None
    own = own.cast(pa.string())
    nothing = pa.scalar(None, pa.string())
    named = pc.unique(own.drop_null()).to_pylist()
    malformed = [text for text in named if text != UNNAMED and not is_cluster_name(text)]
    is_malformed = pc.is_in(own, value_set=pa.array(malformed, pa.string()))
    own = pc.if_else(pc.or_(is_malformed, pc.is_in(own, value_set=pa.array([UNNAMED]))), nothing, own)
    is_id = pc.is_in(own, value_set=pa.array([*input_of.ids], pa.string()))
    is_known = pc.or_(pc.equal(own, declared), is_id)
    is_foreign = pc.fill_null(pc.invert(is_known), False)  # null: the input or the event names no cluster
    found = pc.fill_null(pc.coalesce(declared, own), UNNAMED)
    if not pc.any(pc.or_(is_malformed, is_foreign)).as_py():
        return found, None
    foreign = pc.if_else(is_foreign, pc.binary_join_element_wise(MISMATCH, own, ": "), nothing)
    return found, pc.if_else(is_malformed, MALFORMED, foreign)
