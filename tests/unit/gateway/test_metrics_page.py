"""The page about metrics shows all of them, and no others."""

import asyncio
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from kustos.authorizer import AuthorizerMetrics
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.audit.log import AuditLog
from kustos.gateway.metrics.counters import GatewayMetrics
from kustos.gateway.metrics.loop_lag import LoopLag
from kustos.gateway.metrics.watched import QuorumFigures, WatchedLog, WatchedProcess, WatchedQuorum
from kustos.gateway.session.answer_budget import AnswerBudget
from kustos.gateway.session.request_budget import RequestBudget
from kustos.gateway.shadow import CandidateTrial, WatchedTrial
from kustos.gateway.upstream.topic_ids import TopicIds
from kustos.gateway.workers.figures import WatchedWorkerPool
from testkit.gateway.audit import EVENTS, decided, willing
from tests.unit.gateway.test_topic_ids import Upstream

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"


async def test_the_page_shows_every_metric_with_its_labels() -> None:
    audit = AuditLog(EVENTS, [willing()])
    metrics = GatewayMetrics()
    metrics.watch(acl_count=lambda: 0, metadata_offset=lambda: 0, audit=audit)
    metrics.watch_authorizer(lambda: 0, lambda: 0, AuthorizerMetrics())
    metrics.watch_topic_ids(TopicIds(Upstream({}).ask))
    metrics.watch_loop(LoopLag(asyncio.get_running_loop().time))
    metrics.watch_purgatory(DelayedFuturePurgatory(ALTER_ACLS, 0))
    metrics.registry.register(WatchedQuorum(lambda: QuorumFigures(7, False, 1, 2)))
    metrics.registry.register(WatchedLog(lambda: True))
    metrics.registry.register(WatchedProcess(lambda: 3))
    metrics.watch_answers(AnswerBudget())
    metrics.watch_requests(RequestBudget())
    metrics.watch_listeners({"A": True})
    trial = CandidateTrial()
    trial.lack("acls.yaml")
    metrics.registry.register(WatchedTrial(lambda: trial))
    metrics.registry.register(WatchedWorkerPool(lambda: (2, 0, 0)))
    metrics.decided(3, [decided("a")])
    metrics.answered(3, 0.1, 0.1)
    for succeeded in (True, False):
        metrics.authenticated("PLAIN", succeeded)
    metrics.listener("A").open += 1
    metrics.handshake_failed("A", "http")
    metrics.token_requested("created")
    served = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        sample = family.samples[0]
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if not family.name.endswith("_created"):
            served[name] = frozenset(sample.labels) - {"le"}
    rows = re.findall(r"^\| `(k\w+)` \| \w+ \| ([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    assert {name: frozenset(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == served
    await audit.close()
