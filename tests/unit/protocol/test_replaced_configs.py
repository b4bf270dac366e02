"""AlterConfigs of a broker unsets the omitted settings, except those that clients may not change.

Expected values: `ConfigurationControlManager.legacyAlterConfigs` and `DynamicBrokerConfig` of Kafka 4.3.1.
"""

from typing import Any

import pytest

from kustos.acl import AclBinding
from kustos.protocol.handlers.configs import DESCRIBED_RESOURCES_MAX
from testkit.protocol import cluster_model
from testkit.protocol.driver import Driver, Outcome
from testkit.protocol.random_requests import ALL_ALLOWED
from tests.unit.protocol.protocol_requests import ALPHA, ask, connection, forwarded, may

DESCRIBE, REPLACE, CHANGE = 32, 33, 44
TOPIC, BROKER = 2, 4
OF_A_BROKER, OF_ALL_BROKERS, OF_A_FILE, BY_DEFAULT = 2, 3, 4, 5
FAILED, TOPIC_DENIED, CLUSTER_DENIED, INVALID_REQUEST = -1, 29, 31, 42
LISTENERS, PROTOCOLS = "listeners", "listener.security.protocol.map"
ALTERS = may("ALTER_CONFIGS", "CLUSTER")


def replaced(kind: int, name: str) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": "background.threads", "value": "11"}],
    }


def upstream_has(monkeypatch: pytest.MonkeyPatch, *settings: tuple[str, int, int], code: int = 0) -> None:
    """Give upstream's brokers settings: the source of the value in force, and another source."""

    def described(_model: object, request: Any, made: Any) -> Any:
        result = made.root.ELEMENTS["results"]
        config = result.ELEMENTS["configs"]
        synonym = config.ELEMENTS["synonyms"]
        configs = [
            config(name=name, config_source=source, synonyms=[synonym(name=name, source=other)])
            for name, source, other in settings
        ]
        results = [
            result(
                error_code=code,
                error_message="why not" if code else None,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                configs=[] if code else [one for one in configs if one.name in each.configuration_keys],
            )
            for each in request.resources
        ]
        return made.root(results=results)

    monkeypatch.setitem(cluster_model.ANSWERS, DESCRIBE, described)


def replace(driver: Driver, *resources: tuple[int, str]) -> tuple[Outcome, list[tuple[int, str | None]]]:
    """Return the outcome of an AlterConfigs, and the code and message of each resource."""
    outcome, answer = ask(driver, REPLACE, 2, resources=[replaced(*each) for each in resources])
    return outcome, [(each["error_code"], each["error_message"] or None) for each in answer["responses"]]


def sent(outcome: Outcome) -> list[int]:
    return [int.from_bytes(frame[:2], "big") for frame in outcome.forwarded]


@pytest.mark.parametrize("name", ["1", ""])
@pytest.mark.parametrize("setting", [LISTENERS, PROTOCOLS, "super.users", "advertised.listeners"])
@pytest.mark.parametrize(
    "sources", [(OF_A_BROKER, OF_A_BROKER), (OF_ALL_BROKERS, OF_ALL_BROKERS), (OF_A_FILE, OF_A_BROKER)]
)
def test_a_protected_dynamic_setting_is_not_unset(
    monkeypatch: pytest.MonkeyPatch, name: str, setting: str, sources: tuple[int, int]
) -> None:
    upstream_has(monkeypatch, (setting, *sources), ("background.threads", OF_A_BROKER, OF_A_BROKER))
    outcome, results = replace(connection(ALTERS), (BROKER, name))
    text = (
        f"Cannot unset these configs here: {setting}. AlterConfigs unsets what it does not name, "
        "use IncrementalAlterConfigs"
    )
    assert (results, sent(outcome)) == ([(INVALID_REQUEST, text)], [DESCRIBE])


def test_a_static_broker_setting_does_not_block_a_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_has(monkeypatch, (LISTENERS, OF_A_FILE, OF_A_FILE), (PROTOCOLS, BY_DEFAULT, BY_DEFAULT))
    outcome, results = replace(connection(ALTERS), (BROKER, "1"))
    assert (results, sent(outcome)) == ([(0, None)], [DESCRIBE, REPLACE])


def test_other_resources_are_altered_and_answered_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_has(monkeypatch, (LISTENERS, OF_A_BROKER, OF_A_BROKER))
    resources = ((TOPIC, "hidden-gamma"), (BROKER, "1"), (TOPIC, ALPHA))
    outcome, results = replace(connection(ALTERS, may("ALTER_CONFIGS")), *resources)
    assert [code for code, _ in results] == [TOPIC_DENIED, INVALID_REQUEST, 0]
    assert [each["resource_name"] for each in forwarded(outcome, 1)["resources"]] == [ALPHA]


def test_a_broker_that_cannot_be_described_is_not_altered(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_has(monkeypatch, code=INVALID_REQUEST)
    outcome, results = replace(connection(ALTERS), (BROKER, "17"))
    assert (results, sent(outcome)) == ([(INVALID_REQUEST, "why not")], [DESCRIBE])
    monkeypatch.setitem(cluster_model.ANSWERS, DESCRIBE, lambda _model, _request, made: made.root())
    outcome, results = replace(connection(ALTERS), (BROKER, "1"))
    assert ([code for code, _ in results], sent(outcome)) == ([FAILED], [DESCRIBE])


def test_a_denied_alteration_does_not_query_the_broker() -> None:
    outcome, results = replace(connection(), (BROKER, "1"))
    assert ([code for code, _ in results], outcome.forwarded) == ([CLUSTER_DENIED], [])


@pytest.mark.parametrize("granted", [[], [may("ALTER_CONFIGS")]])
def test_rights_that_change_during_the_query_apply(
    monkeypatch: pytest.MonkeyPatch, granted: list[AclBinding]
) -> None:
    driver = connection(ALTERS)

    def described(_model: object, request: Any, made: Any) -> Any:
        driver.replace_acls(granted)
        result = made.root.ELEMENTS["results"]
        [each] = request.resources
        return made.root(results=[result(resource_type=each.resource_type, resource_name=each.resource_name)])

    monkeypatch.setitem(cluster_model.ANSWERS, DESCRIBE, described)
    outcome, results = replace(driver, (TOPIC, ALPHA), (BROKER, "1"))
    assert ([code for code, _ in results], sent(outcome)) == ([TOPIC_DENIED, CLUSTER_DENIED], [DESCRIBE])


def test_topics_are_altered_without_a_query() -> None:
    outcome, results = replace(connection(may("ALTER_CONFIGS")), (TOPIC, ALPHA))
    assert (results, sent(outcome)) == ([(0, None)], [REPLACE])


def test_an_incremental_alteration_needs_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    upstream_has(monkeypatch, (LISTENERS, OF_A_BROKER, OF_A_BROKER))
    change = {"name": "background.threads", "value": "11", "config_operation": 0}
    resource = {"resource_type": BROKER, "resource_name": "1", "configs": [change]}
    outcome, _ = ask(connection(ALTERS), CHANGE, 1, resources=[resource])
    assert sent(outcome) == [CHANGE]


def test_too_many_brokers_are_rejected() -> None:
    brokers = [(BROKER, str(number)) for number in range(DESCRIBED_RESOURCES_MAX + 1)]
    outcome, results = replace(connection(*ALL_ALLOWED), *brokers)
    assert ({code for code, _ in results}, outcome.forwarded) == ({INVALID_REQUEST}, [])
