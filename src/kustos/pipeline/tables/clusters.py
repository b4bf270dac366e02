"""The rows of one cluster: every question is about one, since only uses in a cluster count for its grants.

A cluster has a name and `ids`: other names that rows of it carry, such as the id in its events, or the empty
text of rows that name none.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kustos.pipeline.errors import ClusterError
from kustos.pipeline.lines.clusters import UNNAMED
from kustos.pipeline.places import Place, in_parallel, source_of, stamp_of
from kustos.pipeline.schemas import CLUSTER
from kustos.pipeline.tables.delta import DataFile

MAXIMUM_FILES: Final = 16_384
"""Files whose clusters are remembered: they never change."""

SHOWN_MAX: Final = 20
"""Clusters listed in an error: events may name any number of them."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that questions are about: its name, and all texts by which rows name it."""

    name: str
    ids: frozenset[str]


Ids = Mapping[str, Collection[str]]
"""By the name of a cluster what rows also name it by."""


def names_of(found: Collection[str], ids: Ids) -> list[str]:
    """Return the names of the clusters that rows name in these ways, sorted."""
    return sorted({_name_of(each, ids) for each in found})


def _name_of(text: str, ids: Ids) -> str:
    return next((name for name, others in ids.items() if text in others), text)


def chosen_cluster(found: Collection[str], name: str | None, ids: Ids) -> Cluster:
    """Return the cluster of a name, or of an id, among those `found`; without a name the only one.

    Raises `ClusterError`, which lists them.
    """
    names = names_of(found, ids)
    if name is None:
        if len(names) > 1:
            raise ClusterError(
                f"the tables have several clusters, choose one with `--cluster`: {_listed(names)}"
            )
        name = names[0] if names else UNNAMED
    name = _name_of(name, ids)
    if names and name not in names:
        raise ClusterError(f"the tables have no cluster `{name}`, only {_listed(names)}")
    return Cluster(name, frozenset((name, *ids.get(name, ()))))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" if name else "`''` (lines that name none)" for name in names[:SHOWN_MAX])
    return shown if len(names) <= SHOWN_MAX else f"{shown} and {len(names) - SHOWN_MAX:,} more"


def rows_of_cluster(rows: DataFrame, cluster: Cluster | None, with_unnamed: bool = False) -> DataFrame:
    """Return the rows of a cluster, or all for None; `cluster` is never null in them.

    `with_unnamed`: also rows that name none.
    """
    if cluster is None:
        return rows.withColumn(CLUSTER, sql.coalesce(CLUSTER, sql.lit(UNNAMED)))
    return rows.filter(_is_of(names_read(cluster, with_unnamed))).withColumn(CLUSTER, sql.lit(cluster.name))


def names_read(cluster: Cluster, with_unnamed: bool = False) -> frozenset[str]:
    """Return what the rows of a cluster name it by; `with_unnamed` as in `rows_of_cluster`."""
    return cluster.ids | {UNNAMED} if with_unnamed else cluster.ids


def _is_of(names: Collection[str]) -> Column:
    """Return whether a row names one of these; a filter that Parquet's readers can apply by their footers."""
    found = sql.col(CLUSTER).isin(sorted(names))
    return found | sql.col(CLUSTER).isNull() if UNNAMED in names else found


def named_rows(rows: DataFrame, cluster: Cluster | None) -> DataFrame:
    """Return answers with their cluster."""
    if cluster is not None:
        return rows.withColumn(CLUSTER, sql.lit(cluster.name))
    if CLUSTER in rows.columns:
        return rows
    return rows.withColumn(CLUSTER, sql.lit(UNNAMED))


def others_of(rows: DataFrame, cluster: Cluster, clusters: Collection[str] | None, ids: Ids) -> DataFrame:
    """Return the answers on other clusters that rows still name, by `ids` too, or on all others for None."""
    if clusters is None:
        return rows.filter(~sql.coalesce(CLUSTER, sql.lit(UNNAMED)).isin(sorted(cluster.ids)))
    return rows.filter(sql.col(CLUSTER).isin(sorted({*clusters, *names_of(clusters, ids)} - cluster.ids)))


@lru_cache(maxsize=MAXIMUM_FILES)
def _clusters_of_file(file: Place, _stamp: int) -> frozenset[str]:
    with parquet.ParquetFile(source_of(file)) as content:
        if not content.metadata.num_rows:
            return frozenset()
        schema = content.schema_arrow
        if CLUSTER not in schema.names:
            return frozenset({UNNAMED})
        kind = schema.field(CLUSTER).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise pa.ArrowInvalid(f"column `{CLUSTER}` is {kind}, not text")
        found = content.read(columns=[CLUSTER])[CLUSTER]
    return frozenset(name or UNNAMED for name in pc.unique(found).to_pylist())


def clusters_of_files(folder: Place, files: Iterable[DataFile]) -> frozenset[str]:
    """Return the clusters that the rows of files below a table's folder name.

    Raises OSError, or ArrowInvalid for a file that is damaged.

    A file is opened only if Delta's log does not say that all its rows are of one cluster.
    """
    found, unclear = set(), []
    for file in files:
        only = file.statistics.only_cluster
        if only is None:
            unclear.append(folder / file.name)
        else:
            found.add(only)
    for names in in_parallel(unclear, lambda place: _clusters_of_file(place, stamp_of(place))):
        found |= names
    return frozenset(found)
