"""The metrics of the gateway, in Prometheus' format: counters, and gauges that are computed on demand."""

from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.loop_lag import LoopLag
from kustos.gateway.metrics.observer import AclPosition, FixedPosition, GatewayObserver
from kustos.gateway.metrics.watched import QuorumFigures, WatchedLog, WatchedProcess, WatchedQuorum

__all__ = [
    "AclPosition",
    "FixedPosition",
    "GatewayMetrics",
    "GatewayObserver",
    "LoopLag",
    "QuorumFigures",
    "WatchedLog",
    "WatchedProcess",
    "WatchedQuorum",
]
