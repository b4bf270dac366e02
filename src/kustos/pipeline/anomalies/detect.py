"""The search for anomalies: all detectors over one window."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from kustos.pipeline.anomalies.access_pairs import enumeration, first_seen, unfamiliar
from kustos.pipeline.anomalies.activity import Scope, activity, rollup_of_events
from kustos.pipeline.anomalies.denials import denial_bursts
from kustos.pipeline.anomalies.dormancy import dormant_waking
from kustos.pipeline.anomalies.findings import without
from kustos.pipeline.anomalies.hosts import new_hosts
from kustos.pipeline.anomalies.parameters import SUPPRESSIONS_MAX, AnomalyParameters, Suppression, Window
from kustos.pipeline.anomalies.super_users import super_user_use
from kustos.pipeline.anomalies.times import unusual_hours
from kustos.pipeline.errors import AnomalyInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_anomalies(
    spark: "SparkSession",  # noqa: ARG001  all questions are asked alike
    *,
    window: Window,
    rollup: DataFrame | None = None,
    events: DataFrame | None = None,
    parameters: AnomalyParameters | None = None,
    suppressions: Sequence[Suppression] = (),
) -> DataFrame:
    """Return the anomalies of the window's days as rows of `findings`, learnt from the days before it.

    Give `audit_rollup`, or `audit_events` for bursts to be judged by their worst hour, not both. Nothing is
    run here; `spark` makes no table of its own, it is taken as by the other questions. The input is read
    several times: hand in what lies in files, or persist it. A principal has at most one finding of a kind
    and day. Raise `AnomalyInputError` if the question makes no sense.
    """
    if rollup is None and events is not None:
        source = rollup_of_events(events)
    elif rollup is not None and events is None:
        source = rollup
    else:
        raise AnomalyInputError("give either a roll-up or events to search for anomalies")
    if len(suppressions) > SUPPRESSIONS_MAX:
        raise AnomalyInputError(f"{len(suppressions)} suppressions are more than {SUPPRESSIONS_MAX}")
    scope = Scope(window, parameters or AnomalyParameters())
    days = activity(source, scope)
    fresh = unfamiliar(days, scope)
    tours = enumeration(fresh, scope)
    met = first_seen(fresh, scope).join(tours.select("principal", "day"), ["principal", "day"], "left_anti")
    found = tours
    for more in (
        met,
        new_hosts(days, scope),
        denial_bursts(days, scope),
        unusual_hours(days, scope),
        super_user_use(days, scope),
        dormant_waking(days, scope),
    ):
        found = found.unionByName(more)
    return without(found, suppressions)
