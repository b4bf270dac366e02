"""The whole answer of a replay, as frames of one set of flips."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.replay.accesses import accesses_of_rollup
from kustos.pipeline.replay.flips import flips
from kustos.pipeline.replay.summaries import flips_by_kind, flips_by_principal, flips_by_resource, top_flips

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Replay:
    """Flips and their sums; frames that nothing has been asked of yet.

    Who asks more than one of them asks `cached()` first: the flips are then found once.
    """

    flips: "DataFrame"

    @property
    def by_principal(self) -> "DataFrame":
        """The table `replay_by_principal`."""
        return flips_by_principal(self.flips)

    @property
    def by_resource(self) -> "DataFrame":
        """The table `replay_by_resource`."""
        return flips_by_resource(self.flips)

    @property
    def by_kind(self) -> "DataFrame":
        """The table `replay_by_kind`."""
        return flips_by_kind(self.flips)

    def top(self, limit: int) -> "DataFrame":
        """Return the flips that weigh most."""
        return top_flips(self.flips, limit)

    def cached(self) -> "Replay":
        """Return the same over flips that Spark keeps, on disk where memory does not do; see `release`."""
        return Replay(self.flips.persist())

    def release(self) -> None:
        """Let Spark forget kept flips."""
        self.flips.unpersist()


def replay(
    spark: "SparkSession",
    rollup: "DataFrame",
    candidate: AclsInForce,
    baseline: AclsInForce | None = None,
    *,
    rule_changes: bool = True,
) -> Replay:
    """Return what `candidate` would decide otherwise over all recorded access of the table `audit_rollup`.

    Otherwise than recorded or, with a `baseline` such as today's ACLs, than those decide. Nothing is asked
    of Spark yet but to have the ACLs sent.
    """
    shipped = None if baseline is None else ship(spark, baseline)
    accesses = accesses_of_rollup(rollup, with_rule=rule_changes and baseline is None)
    return Replay(flips(accesses, ship(spark, candidate), shipped, rule_changes=rule_changes))
