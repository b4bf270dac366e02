"""A client of the old AlterConfigs unsets nothing of a broker that clients may not change."""

from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from testkit.guarded.cluster import GuardedCluster
from testkit.waiting import wait_until

WAIT_S = 60.0
THREADS, PROTOCOLS = "background.threads", "listener.security.protocol.map"
BROKER = (ConfigResource.Type.BROKER, "1")


def done(futures: dict[ConfigResource, Any]) -> Any:
    """Return the result for the one resource; raise its `KafkaException`."""
    [future] = futures.values()
    return future.result(WAIT_S)


def replace(admin: AdminClient, threads: str) -> None:
    """Replace the dynamic settings of the broker by one."""
    with pytest.warns(DeprecationWarning, match="alter_configs"):
        futures = admin.alter_configs([ConfigResource(*BROKER, set_config={THREADS: threads})])
    done(futures)


def add(admin: AdminClient, protocols: str) -> None:
    """Set a setting of the broker that clients may not change, and leave the others."""
    entry = ConfigEntry(PROTOCOLS, protocols, incremental_operation=AlterConfigOpType.SET)
    done(admin.incremental_alter_configs([ConfigResource(*BROKER, incremental_configs=[entry])]))


def settings(admin: AdminClient) -> dict[str, ConfigEntry]:
    """Return the broker's settings, as it has them."""
    described: dict[str, ConfigEntry] = done(admin.describe_configs([ConfigResource(*BROKER)]))
    return described


def wait_for_dynamic(admin: AdminClient, expected: dict[str, str]) -> None:
    """Wait until these are all dynamic settings of the broker."""

    def has() -> bool:
        found = {
            name: each.value
            for name, each in settings(admin).items()
            # the library gives its number
            if ConfigSource(each.source) is ConfigSource.DYNAMIC_BROKER_CONFIG
        }
        return found == expected

    wait_until(has, what=f"the broker has {expected}")


def test_a_dynamic_setting_that_stays_is_not_unset_by_a_request_that_does_not_name_it(
    scene: GuardedCluster,
) -> None:
    client, upstream = (
        AdminClient(scene.librdkafka("admin")),
        AdminClient({"bootstrap.servers": scene.direct}),
    )
    replace(client, "11")
    wait_for_dynamic(upstream, {THREADS: "11"})
    protocols = settings(upstream)[PROTOCOLS].value
    assert protocols is not None
    add(upstream, protocols)
    wait_for_dynamic(upstream, {THREADS: "11", PROTOCOLS: protocols})
    with pytest.raises(KafkaException, match=f"Cannot unset these configs here: {PROTOCOLS}"):
        replace(client, "12")
    # the broker itself would have unset it
    replace(upstream, "13")
    wait_for_dynamic(upstream, {THREADS: "13"})
    replace(client, "14")
    wait_for_dynamic(upstream, {THREADS: "14"})
