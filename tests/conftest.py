"""The brokers that tests share: started once, since a start costs seconds and topics have names."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import hypothesis
import pytest

from testkit.kafka import KafkaCluster, KafkaNode, KafkaTools, NodeSettings

NodeFactory = Callable[[NodeSettings], KafkaNode]
ClusterFactory = Callable[..., KafkaCluster]

SOAK_EXAMPLES = 2000
"""Of each property that does not itself say how many, where a run has hours (`make soak`); else 100."""

MUTATION_EXAMPLES = 40
"""For each of a thousand faults (`make mutation`), always the same; half a second must do."""

# how long an example takes says something about the machine, nothing about the code
hypothesis.settings.register_profile(
    "tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tests")
hypothesis.settings.register_profile("soak", max_examples=SOAK_EXAMPLES)
hypothesis.settings.register_profile(
    "mutation", max_examples=MUTATION_EXAMPLES, derandomize=True, database=None
)


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
