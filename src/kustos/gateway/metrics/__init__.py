"""What the gateway counts and looks up, in Prometheus' format."""

from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.loop_lag import LoopLag
from kustos.gateway.metrics.observer import GatewayObserver
from kustos.gateway.metrics.watched import QuorumFigures, WatchedLog, WatchedProcess, WatchedQuorum

__all__ = [
    "GatewayMetrics",
    "GatewayObserver",
    "LoopLag",
    "QuorumFigures",
    "WatchedLog",
    "WatchedProcess",
    "WatchedQuorum",
]
