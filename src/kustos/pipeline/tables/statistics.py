"""What Delta's log says about a file's rows, so that no reader opens a file to learn what is not in it.

Statistics are of two columns: `time_ms`, and `cluster`. They come from the footers of files, which their
writers have filled, and go into the log with the files.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyarrow import parquet

from kustos.pipeline.schemas import CLUSTER

TIME: Final = "time_ms"

CLUSTER_CHARACTERS_MAX: Final = 256
"""Longer names are not in the log, which has them with each file: events may name a cluster as they like."""


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The least and the greatest `time_ms` and `cluster` of a file's rows, None where the log does not say.

    Clusters are known only if no row of the file lacks one.
    """

    first_time_ms: int | None = None
    last_time_ms: int | None = None
    first_cluster: str | None = None
    last_cluster: str | None = None

    @property
    def only_cluster(self) -> str | None:
        """The cluster that all rows name; None: they may name several."""
        return self.first_cluster if self.first_cluster == self.last_cluster else None

    def may_name(self, clusters: Collection[str]) -> bool:
        """Return whether a row may name one of these clusters."""
        first, last = self.first_cluster, self.last_cluster
        return first is None or last is None or any(first <= each <= last for each in clusters)


NOTHING_KNOWN: Final = FileStatistics()


def statistics_of_footer(footer: parquet.FileMetaData) -> FileStatistics:
    """Return what a file's footer says."""
    times = _span(footer, TIME, int)
    clusters = _span(footer, CLUSTER, str, has_no_null=True)
    if clusters is not None and any(len(name) > CLUSTER_CHARACTERS_MAX for name in clusters):
        clusters = None
    return FileStatistics(*(times or (None, None)), *(clusters or (None, None)))


def _span(
    footer: parquet.FileMetaData, name: str, kind: type, *, has_no_null: bool = False
) -> tuple[Any, Any] | None:
    schema = footer.schema
    column = next((at for at in range(len(schema)) if schema.column(at).path == name), None)
    if column is None:
        return None
    found = [footer.row_group(number).column(column).statistics for number in range(footer.num_row_groups)]
    if not found or not all(each is not None and each.has_min_max for each in found):
        return None
    if has_no_null and not all(each.has_null_count and each.null_count == 0 for each in found):
        return None
    span = min(each.min for each in found), max(each.max for each in found)
    return span if all(isinstance(end, kind) for end in span) else None  # another writer's may be of another


def statistics_text(rows: int, statistics: FileStatistics) -> str:
    """Return the statistics of a file as the log has them: JSON by Delta's protocol."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    if statistics.first_time_ms is not None:
        least[TIME], greatest[TIME] = statistics.first_time_ms, statistics.last_time_ms
    if statistics.first_cluster is not None:
        least[CLUSTER], greatest[CLUSTER] = statistics.first_cluster, statistics.last_cluster
        nulls[CLUSTER] = 0
    return json.dumps({"numRecords": rows, "minValues": least, "maxValues": greatest, "nullCount": nulls})


def statistics_of_action(row: Mapping[str, Any]) -> FileStatistics:
    """Return the statistics of one of the log's actions, flattened.

    Other writers may cut texts, so long names count as unknown.
    """
    clusters = row.get(f"min.{CLUSTER}"), row.get(f"max.{CLUSTER}")
    is_known = row.get(f"null_count.{CLUSTER}") == 0 and all(
        isinstance(name, str) and len(name) <= CLUSTER_CHARACTERS_MAX for name in clusters
    )
    times = row.get(f"min.{TIME}"), row.get(f"max.{TIME}")
    return FileStatistics(*times, *(clusters if is_known else (None, None)))
