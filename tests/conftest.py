"""The brokers that tests share: started once, since a start costs seconds and topics have names."""

import gc
from collections.abc import Iterator
from contextlib import ExitStack
from zlib import crc32

import hypothesis.core
import pytest

from testkit import seeds
from testkit.kafka import ClusterFactory, KafkaCluster, KafkaNode, KafkaTools, NodeFactory, NodeSettings

EXAMPLES = 60
"""Of each property that does not itself say how many: others in each run, since the seed is another."""

SOAK_EXAMPLES = 2000
"""The same where a run has hours (`make soak`)."""

QUICK_EXAMPLES = 25
"""Of each property that does not itself say how many, while one works (`make test-quick`)."""

MUTATION_EXAMPLES = 40
"""For each of a thousand faults (`make mutation`), always the same; half a second must do."""

COLLECTED_AFTER = (20_000, 20, 50)
"""The thresholds of Python's cyclic garbage collector: with its defaults it took a fifth of the time of many
tests. Most of what a test leaves behind is freed without it."""

# how long an example takes says something about the machine, nothing about the code
hypothesis.settings.register_profile(
    "tests", max_examples=EXAMPLES, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tests")
hypothesis.settings.register_profile("soak", max_examples=SOAK_EXAMPLES)
hypothesis.settings.register_profile("quick", max_examples=QUICK_EXAMPLES)
hypothesis.settings.register_profile(
    "mutation", max_examples=MUTATION_EXAMPLES, derandomize=True, database=None
)


def pytest_configure() -> None:
    """Let hypothesis draw from the seed of the run, unless it was given one of its own."""
    if hypothesis.core.global_force_seed is None:
        hypothesis.core.global_force_seed = seeds.seed_of_run()  # type: ignore[assignment]


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of the garbage collector's sight: it stays to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


def pytest_report_header() -> str:
    return f"{seeds.VARIABLE}={seeds.seed_of_run()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how to draw the same once more, where something failed."""
    if any(terminalreporter.getreports(outcome) for outcome in ("failed", "error")):
        terminalreporter.write_line(f"{seeds.VARIABLE}={seeds.seed_of_run()} repeats what was drawn")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A number for this test alone, which the seed of the run decides."""
    return crc32(f"{seeds.seed_of_run()} {request.node.nodeid}".encode())


@pytest.fixture
def drawing(seed: int) -> seeds.Drawing:
    """Draws examples, others in each run."""
    return seeds.Drawing(seed)


@pytest.fixture(scope="session")
def kafka_tools() -> KafkaTools:
    """Kafka's own command-line tools."""
    return KafkaTools()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    """A broker without an authorizer, PLAINTEXT, for the whole session; tests name topics of their own."""
    with KafkaNode(tmp_path_factory.mktemp("kafka")) as node:
        yield node


@pytest.fixture(scope="module")
def kafka_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeFactory]:
    """Start brokers with settings of one's own; they live as long as the module's tests."""
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(KafkaNode(tmp_path_factory.mktemp("kafka"), settings))


@pytest.fixture(scope="module")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterFactory]:
    """Start clusters, as `kafka_cluster(settings, nodes=2, controllers=1)`, for the module's tests."""
    with ExitStack() as stack:

        def start(
            settings: NodeSettings | None = None, *, nodes: int = 2, controllers: int = 1
        ) -> KafkaCluster:
            folder = tmp_path_factory.mktemp("cluster")
            return stack.enter_context(KafkaCluster(folder, settings, nodes=nodes, controllers=controllers))

        yield start
