"""The result of a replay, as frames of one set of flips."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kustos.pipeline.deciding import AclsInForce, ship
from kustos.pipeline.replay.flips import flips_by_kind, flips_by_principal, flips_by_resource, top_flips
from kustos.pipeline.replay.of_files import ROLLUP, flips_of_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Replay:
    """Flips and their sums, as lazy frames.

    To read more than one of them, call `cached()` first: the flips are then computed once.
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
        """Return the most urgent flips."""
        return top_flips(self.flips, limit)

    def cached(self) -> "Replay":
        """Return the same with persisted flips, on disk where memory is too small; see `release`."""
        return Replay(self.flips.persist())

    def release(self) -> None:
        """Unpersist the flips."""
        self.flips.unpersist()


def replay(
    spark: "SparkSession",
    rollup: "DataFrame",
    candidate: AclsInForce,
    baseline: AclsInForce | None = None,
    *,
    rule_changes: bool = True,
) -> Replay:
    """Return the recorded access of the table `audit_rollup` that `candidate` would decide differently.

    Differently from the record or, with a `baseline` such as today's ACLs, from the baseline. This sends the
    ACLs and runs no Spark job yet.
    """
    shipped = None if baseline is None else ship(spark, baseline)
    found = flips_of_rows(rollup, ROLLUP, ship(spark, candidate), shipped, rule_changes=rule_changes)
    return Replay(found)
