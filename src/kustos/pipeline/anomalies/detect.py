"""The search for anomalies: all detectors over one window."""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.anomalies.access_pairs import enumeration, first_seen, unfamiliar
from kustos.pipeline.anomalies.activity import (
    ActivityScope,
    activity,
    known_pairs,
    principals,
    rollup_of_events,
    unchanged,
)
from kustos.pipeline.anomalies.denials import denial_bursts
from kustos.pipeline.anomalies.dormancy import dormant_waking
from kustos.pipeline.anomalies.failed_logins import failed_logins
from kustos.pipeline.anomalies.hosts import new_hosts
from kustos.pipeline.anomalies.parameters import SUPPRESSIONS_MAX, AnomalyParameters, Suppression, Window
from kustos.pipeline.anomalies.probed_rights import probed_rights
from kustos.pipeline.anomalies.rows import without
from kustos.pipeline.anomalies.super_users import super_user_use
from kustos.pipeline.anomalies.sweeps import sweeps
from kustos.pipeline.anomalies.times import unusual_hours
from kustos.pipeline.errors import AnomalyInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def kept(frame: DataFrame) -> DataFrame:
    """Compute a frame once, and end its plan there: the `keep` for `find_anomalies`.

    Else Spark plans what all detectors share again in each of them, which takes most of the time, and over
    Spark Connect the plan becomes deeper than the hundred messages that protobuf nests. Spark drops the rows
    with the last frame that reads them; if an executor is lost with its rows meanwhile, the search fails.
    """
    return frame.localCheckpoint()


def find_anomalies(
    spark: "SparkSession",  # noqa: ARG001  every query of the pipeline takes a session
    *,
    window: Window,
    rollup: DataFrame | None = None,
    events: DataFrame | None = None,
    security_events: DataFrame | None = None,
    parameters: AnomalyParameters | None = None,
    suppressions: Sequence[Suppression] = (),
    super_users: Collection[str] = (),
    keep: Callable[[DataFrame], DataFrame] = unchanged,
) -> DataFrame:
    """Return the anomalies of the window's days as rows of `anomalies`, learnt from the days before it.

    Give either `audit_rollup`, or `audit_events` to judge bursts by their worst hour; with `security_events`
    failed logins are judged too. `super_users` (`Type:name`) are super users where an event names no rule,
    as lines of older brokers do not. This runs no Spark job, and does not use `spark`, which every query of
    the pipeline takes. Spark reads the input some twenty times unless `keep` (such as `kept`) computes what
    is read more than once. A principal has at most one anomaly of a kind and day; of failed logins, one for
    each address. Raises `AnomalyInputError` for inputs that are not valid.
    """
    if rollup is None and events is not None:
        source = rollup_of_events(events)
    elif rollup is not None and events is None:
        source = rollup
    else:
        raise AnomalyInputError("give either a roll-up or events to search for anomalies")
    if len(suppressions) > SUPPRESSIONS_MAX:
        raise AnomalyInputError(f"{len(suppressions)} suppressions are more than {SUPPRESSIONS_MAX}")
    scope = ActivityScope(window, parameters or AnomalyParameters(), keep, frozenset(super_users))
    days = keep(activity(source, scope))
    everybody, known = keep(principals(days, scope)), keep(known_pairs(days, scope))
    fresh = keep(unfamiliar(days, known, everybody, scope))
    tours = keep(enumeration(fresh, scope))
    toured = sql.broadcast(tours.select("principal", "day"))
    met = first_seen(fresh, scope).join(toured, ["principal", "day"], "left_anti")
    swept = keep(sweeps(days, everybody, scope).unionByName(probed_rights(days, scope)))
    found = tours
    for more in (
        met,
        swept,
        new_hosts(days, everybody, scope),
        denial_bursts(days, known, tours.unionByName(swept), scope),
        unusual_hours(days, everybody, scope),
        super_user_use(days, everybody, scope),
        dormant_waking(days, everybody, scope),
    ):
        found = found.unionByName(more)
    if security_events is not None:
        found = found.unionByName(failed_logins(security_events, scope))
    return without(found, suppressions)
