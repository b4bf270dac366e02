"""Settings of the log override the file's settings, and changes are applied completely."""

import asyncio
from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from kustos.authorizer import StandardAuthorizerPlugin
from kustos.metadata.image import ConfigRemoved, ConfigSet, ImageBuilder, MetadataDelta, image_of
from kustos.metadata.records import ConfigRecord
from kustos.server.dynamic_configs import CHECKS, DynamicConfigs

BROKER, TOPIC = 4, 2
SUPER, EVERYONE = "super.users", "allow.everyone.if.no.acl.found"
GIVEN = {SUPER: "User:file"}


class World:
    """A publisher and the authorizer that it keeps."""

    def __init__(self, given: Mapping[str, str] = GIVEN) -> None:
        loop = asyncio.get_running_loop()
        self.plugin = StandardAuthorizerPlugin(loop.create_future)
        self.plugin.configure(given)
        self.configs = DynamicConfigs(self.plugin, given, 1, loop)
        self.offset = 0

    async def change(self, *records: ConfigRecord) -> None:
        """Publish records as one delta, from another thread as the writer does."""
        self.offset += 1
        delta = MetadataDelta(self.offset, 1, ImageBuilder().replay_all(records))
        await asyncio.to_thread(self.configs.publish_delta, delta)

    @property
    def super_users(self) -> set[str]:
        return set(self.plugin.standard.super_users)

    def lets_everyone_in(self) -> bool:
        return self.plugin.standard.allow_everyone_if_no_acl_found


def record(name: str, value: str | None, resource: str = "", kind: int = BROKER) -> ConfigRecord:
    return ConfigRecord(kind, resource, name, value)


async def test_the_log_goes_before_the_file_and_the_node_before_all() -> None:
    world = World()
    world.configs.publish_snapshot(image_of([record(SUPER, "User:all")]))
    assert world.super_users == {"User:all"}
    await world.change(record(SUPER, "User:one", "1"))
    assert world.super_users == {"User:one"}
    await world.change(record(SUPER, "User:all2"))
    assert world.super_users == {"User:one"}
    await world.change(record(SUPER, None, "1"))
    assert world.super_users == {"User:all2"}
    await world.change(record(SUPER, None))
    assert world.super_users == {"User:file"}


async def test_what_the_image_does_not_say_is_the_file_s() -> None:
    world = World()
    world.configs.publish_snapshot(image_of([]))
    assert world.super_users == {"User:file"}
    assert not world.lets_everyone_in()
    await world.change(record(EVERYONE, "true"))
    assert world.lets_everyone_in()
    assert world.super_users == {"User:file"}


@pytest.mark.parametrize(
    "other",
    [
        record(SUPER, "User:x", "2"),
        record(SUPER, "User:x", "01"),
        record(SUPER, "User:x", "1", TOPIC),
        record("log.retention.ms", "1"),
        record("super.user", "User:x"),
    ],
)
async def test_settings_of_others_change_nothing(other: ConfigRecord) -> None:
    world = World()
    version = world.plugin.standard.version
    await world.change(other)
    world.configs.publish_snapshot(image_of([other]))
    assert world.super_users == {"User:file"}
    assert world.plugin.standard.version == version


async def test_a_value_that_the_authorizer_refuses_leaves_the_old_ones() -> None:
    world = World()
    await world.change(record(SUPER, "User:good"))
    with capture_logs() as logs:
        await world.change(record(SUPER, "nobody"), record(EVERYONE, "true"))
    assert world.super_users == {"User:good"}
    assert not world.lets_everyone_in()
    assert [entry["log_level"] for entry in logs] == ["error"]
    await world.change(record(SUPER, "User:better"))
    assert world.super_users == {"User:better"}
    assert world.lets_everyone_in()


async def test_the_last_of_many_changes_in_one_batch_counts() -> None:
    world = World()
    await world.change(record(SUPER, "User:a"), record(SUPER, None), record(SUPER, "User:b"))
    assert world.super_users == {"User:b"}


async def test_a_snapshot_from_another_thread_replaces_everything() -> None:
    world = World()
    await world.change(record(EVERYONE, "true"))
    await asyncio.to_thread(world.configs.publish_snapshot, image_of([record(SUPER, "User:new")]))
    assert world.super_users == {"User:new"}
    assert not world.lets_everyone_in()


async def test_the_file_s_own_values_come_back_as_they_are_now() -> None:
    world = World()
    await world.change(record(SUPER, "User:log"))
    world.configs.restate({SUPER: "User:newer"})
    assert world.super_users == {"User:log"}
    await world.change(record(SUPER, None))
    assert world.super_users == {"User:newer"}


@pytest.mark.parametrize("value", ["yes", "", "1", "truth"])
def test_only_two_words_are_a_boolean(value: str) -> None:
    with pytest.raises(ValueError, match="either true or false"):
        CHECKS[EVERYONE](value)


@pytest.mark.parametrize("value", ["true", "FALSE", " True "])
def test_the_two_words_are_taken_in_any_case(value: str) -> None:
    CHECKS[EVERYONE](value)


def test_a_change_of_the_log_is_told_as_it_is() -> None:
    changes = ImageBuilder().replay_all([record(SUPER, "x"), record(SUPER, None)])
    assert [type(change) for change in changes] == [ConfigSet, ConfigRemoved]
