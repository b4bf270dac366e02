"""Three kustos nodes that follow three real controllers, in front of a real broker."""

import asyncio
from dataclasses import replace

import pytest

from kustos.acl import EVERY_BINDING, AclBinding, AclPermissionType, ResourceType
from kustos.client import AuthenticationFailedError, ClientSettings, parse_address
from kustos.client.admin.client import AdminClient, PasswordUpsertion
from kustos.client.sasl import connect
from kustos.metadata.scram import ScramMechanism
from kustos.wire.api_keys import ApiKey
from testkit.kustos import KustosNode
from testkit.processes import frozen
from testkit.quorum.nodes import (
    DENIED,
    UNKNOWN_TOPIC,
    acls_of,
    acls_of_broker,
    allow,
    ann,
    create_acls,
    leader_of,
    logged_in,
    login,
    readiness,
    topic_error,
)
from testkit.quorum.storm import active, kill_amid, propagation
from testkit.waiting import PATIENCE_S, wait_until
from tests.quorum.world import World

CLUSTER_AUTHORIZATION_FAILED = 31
CREATIONS = 150
TOKEN_NOT_FOUND = 62


def created(node: KustosNode, binding: AclBinding, user: str = "admin") -> int:
    async def run() -> int:
        async with await logged_in(node, user) as connection:
            return int((await create_acls(connection, binding)).results[0].error_code)

    return asyncio.run(run())


def seen(node: KustosNode, topic: str) -> int:
    async def run() -> int:
        async with await logged_in(node, "ann") as connection:
            return await topic_error(connection, topic)

    return asyncio.run(run())


def test_created_on_one_enforced_on_all(world: World) -> None:
    took, until = asyncio.run(propagation(world.nodes, "spread", 10))
    assert len(took) == len(until) == 10
    world.settled()


def test_an_answered_denial_is_in_force_where_it_was_answered(world: World) -> None:
    async def run() -> None:
        node = world.nodes[1]
        async with await logged_in(node, "admin") as admin, await logged_in(node, "ann") as client:
            for number in range(10):
                topic = f"denied-{number}"
                await create_acls(admin, allow(topic))
                assert await topic_error(client, topic) == UNKNOWN_TOPIC
                await create_acls(admin, ann(topic, AclPermissionType.DENY))
                assert await topic_error(client, topic) == DENIED

    asyncio.run(run())


def test_deleted_on_one_gone_on_all(world: World) -> None:
    async def run() -> list[AclBinding]:
        settings = login(world.nodes[2], "admin")
        every = EVERY_BINDING
        pattern = replace(every.pattern_filter, resource_type=ResourceType.TOPIC, name="fleeting")
        of_topic = replace(every, pattern_filter=pattern)
        async with AdminClient(settings) as admin:
            [deleted] = await admin.delete_acls([of_topic])
            return list(deleted.deleted)

    assert created(world.nodes[0], allow("fleeting")) == 0
    world.settled()
    assert asyncio.run(run()) == [allow("fleeting")]
    assert seen(world.nodes[2], "fleeting") == DENIED
    world.settled()


def test_kustos_decides_first_and_the_controller_again_for_the_same_principal(world: World) -> None:
    assert created(world.nodes[0], allow("no"), "ann") == CLUSTER_AUTHORIZATION_FAILED
    assert created(world.nodes[0], allow("no"), "carol") == CLUSTER_AUTHORIZATION_FAILED
    world.settled()
    assert world.quorum.broker is not None
    assert allow("no") not in asyncio.run(acls_of_broker(world.quorum.broker))


@pytest.mark.behaviour("B195")
def test_a_user_made_at_one_node_logs_in_and_is_described_at_the_others(world: World) -> None:
    async def run() -> None:
        node = world.nodes[0]
        async with AdminClient(login(node, "admin")) as admin:
            made = PasswordUpsertion("dora", ScramMechanism.SCRAM_SHA_256, b"dora-secret", 4096)
            assert await admin.alter_user_scram_credentials([made]) == {"dora": None}
            [described] = await admin.describe_user_scram_credentials(["dora"])
            assert described.credentials == (("SCRAM-SHA-256", 4096),)
        properties = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="dora" password="dora-secret";'
            ),
        }

        async def can_log_in(at: KustosNode) -> bool:
            try:
                async with await connect(
                    parse_address(at.bootstrap), ClientSettings.from_properties(at.bootstrap, properties)
                ):
                    return True
            except AuthenticationFailedError:
                return False

        assert await can_log_in(node)
        for other in world.nodes[1:]:
            await asyncio.to_thread(wait_until, lambda at=other: asyncio.run(can_log_in(at)), what="a login")
            async with AdminClient(login(other, "admin")) as admin:
                [described] = await admin.describe_user_scram_credentials(["dora"])
                assert described.credentials == (("SCRAM-SHA-256", 4096),)

    asyncio.run(run())


def test_tokens_are_made_by_the_controllers_and_known_to_all(world: World) -> None:
    async def run() -> None:
        async with await logged_in(world.nodes[0], "ann") as owner:
            made = await owner.request(ApiKey.CREATE_DELEGATION_TOKEN, lambda codec: codec.new(renewers=[]))
            assert made.error_code == 0, made
            assert made.principal_name == "ann"
            described = await owner.request(
                ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda codec: codec.new(owners=None)
            )
            [token] = described.tokens
            # both made it with the same secret
            assert (token.token_id, token.hmac) == (made.token_id, made.hmac)
            # Kafka's controller finds tokens in a cache that it fills a moment after it has answered
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    renewed = await owner.request(
                        ApiKey.RENEW_DELEGATION_TOKEN,
                        lambda codec: codec.new(hmac=made.hmac, renew_period=3_600_000),
                    )
                    if renewed.error_code != TOKEN_NOT_FOUND:
                        break
            assert renewed.error_code == 0
            ended = await owner.request(
                ApiKey.EXPIRE_DELEGATION_TOKEN, lambda codec: codec.new(hmac=made.hmac, expiry_time_period=-1)
            )
            assert ended.error_code == 0
            gone = await owner.request(ApiKey.DESCRIBE_DELEGATION_TOKEN, lambda codec: codec.new(owners=None))
            assert gone.tokens == []

    asyncio.run(run())


def test_a_killed_active_controller_loses_nothing_that_was_acknowledged(world: World) -> None:
    storm = kill_amid(world.quorum, world.nodes, "storm", CREATIONS)
    assert storm.final_epoch > storm.killed_epoch
    assert len(storm.acknowledged) + len(storm.refused) == CREATIONS
    assert world.quorum.broker is not None
    assert storm.acknowledged <= asyncio.run(acls_of_broker(world.quorum.broker))


def test_a_frozen_node_catches_up(world: World) -> None:
    server = world.nodes[2].server
    assert server is not None
    with frozen(server.pid):
        assert created(world.nodes[0], allow("meanwhile")) == 0
        assert seen(world.nodes[0], "meanwhile") == UNKNOWN_TOPIC
    wait_until(lambda: seen(world.nodes[2], "meanwhile") == UNKNOWN_TOPIC, what="it catches up")


def test_a_frozen_leader_is_left_for_the_next(world: World) -> None:
    leader, epoch = leader_of(world.nodes[0])
    with frozen(active(world.quorum, world.nodes[0]).pid):
        assert created(world.nodes[1], allow("without-it")) == 0
        assert seen(world.nodes[1], "without-it") == UNKNOWN_TOPIC
        wait_until(lambda: leader_of(world.nodes[0])[1] > epoch, what="a new epoch")
        assert leader_of(world.nodes[0])[0] != leader
    world.settled()


def test_a_restarted_node_goes_on_from_its_copy(world: World) -> None:
    node = world.nodes[2]
    node.kill()
    assert created(world.nodes[0], allow("while-away")) == 0
    node.start()
    assert seen(node, "while-away") == UNKNOWN_TOPIC
    assert readiness(node)["parts"]["quorum"]

    async def acls() -> set[AclBinding]:
        async with await logged_in(node, "admin") as connection:
            return await acls_of(connection)

    assert allow("while-away") in asyncio.run(acls())
    world.settled()
