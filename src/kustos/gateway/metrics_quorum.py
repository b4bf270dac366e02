"""How a quorum is followed, as figures."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


@dataclass(frozen=True, slots=True)
class QuorumFigures:
    """What is known of a quorum at some moment; `staleness_ms` None: nothing was ever current."""

    staleness_ms: int | None
    is_stale: bool
    epoch: int
    high_watermark: int


class WatchedQuorum(Collector):
    """The quorum of a node in cluster mode."""

    def __init__(self, figures: Callable[[], QuorumFigures]) -> None:
        self._figures: Final = figures

    def collect(self) -> Iterable[Metric]:
        """Yield the figures of this moment."""
        now = self._figures()
        yield GaugeMetricFamily(
            "kustos_metadata_staleness_seconds",
            "How old the metadata of the quorum may be at most, -1 before it was first current.",
            -1 if now.staleness_ms is None else now.staleness_ms / 1000,
        )
        yield GaugeMetricFamily(
            "kustos_metadata_stale",
            "Whether the metadata is too old to decide by, so that everything is denied.",
            int(now.is_stale),
        )
        yield GaugeMetricFamily(
            "kafka_server_raft_metrics_current_epoch", "The epoch of the quorum's leader.", now.epoch
        )
        yield GaugeMetricFamily(
            "kafka_server_raft_metrics_high_watermark",
            "Offset below which the metadata log is known to be committed.",
            now.high_watermark,
        )
