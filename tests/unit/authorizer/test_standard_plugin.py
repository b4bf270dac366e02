"""StandardAuthorizer through the interface: settings, start, readiness, changes through the mutator."""

import asyncio
import gc
from collections.abc import Sequence
from uuid import UUID

import pytest

from kustos.acl import (
    EVERY_BINDING,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclValueError,
    KafkaPrincipal,
    ResourceType,
)
from kustos.authorizer import (
    SUCCESS,
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
    AuthorizationResult,
    Authorizer,
    AuthorizerMetrics,
    AuthorizerNotReadyError,
    AuthorizerServerInfo,
    ClusterResource,
    Endpoint,
    KafkaApiError,
    StandardAuthorizerPlugin,
)
from kustos.wire import ErrorCode
from testkit.acls.specified_authorizer import SpecAuthorizer
from testkit.protocol.random_requests import allow

PATIENCE_S = 60.0
READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
ALLOWED, DENIED = AuthorizationResult.ALLOWED, AuthorizationResult.DENIED
ALICE = AuthorizableRequestContext(KafkaPrincipal("User", "alice"), "10.0.0.1")
ROOT = AuthorizableRequestContext(KafkaPrincipal("User", "root"), "10.0.0.1")
CLIENTS = Endpoint("CLIENTS", "SASL_PLAINTEXT", "127.0.0.1", 9092)
CONTROLLER = Endpoint("CONTROLLER", "PLAINTEXT", "127.0.0.1", 9093)
ORDERS = allow(TOPIC, "orders", READ)
PAY = allow(TOPIC, "pay", READ)


def made(configs: dict[str, str] | None = None, *acls: AclBinding) -> StandardAuthorizerPlugin:
    plugin = StandardAuthorizerPlugin(asyncio.get_running_loop().create_future)
    plugin.configure({"super.users": "User:root"} if configs is None else configs)
    plugin.standard.load_snapshot((UUID(int=number), acl) for number, acl in enumerate(acls, 1))
    return plugin


def ready(configs: dict[str, str] | None = None, *acls: AclBinding) -> StandardAuthorizerPlugin:
    plugin = made(configs, *acls)
    plugin.complete_initial_load()
    return plugin


def asks(plugin: Authorizer, context: AuthorizableRequestContext, *names: str) -> list[AuthorizationResult]:
    return list(plugin.authorize(context, [Action(TOPIC, name, READ) for name in names]))


def info(*early: str) -> AuthorizerServerInfo:
    return AuthorizerServerInfo(
        cluster_resource=ClusterResource("a-cluster"),
        broker_id=1,
        endpoints=(CLIENTS, CONTROLLER),
        inter_broker_endpoint=CLIENTS,
        early_start_listeners=frozenset(early),
    )


@pytest.mark.behaviour("B001")
async def test_super_users_are_split_at_semicolons_and_blank_ones_are_ignored() -> None:
    plugin = ready({"super.users": " ;User:root; ; User:a,b ;"})
    assert plugin.standard.super_users == {"User:root", "User:a,b"}
    assert ready({}).standard.super_users == frozenset()
    with pytest.raises(AclValueError):
        ready({"super.users": "root"})


@pytest.mark.behaviour("B002")
@pytest.mark.parametrize(
    ("text", "allowed"),
    [("true", True), (" true ", True), ("TRUE", True), ("false", False), ("yes", False), ("", False)],
)
async def test_the_default_result_is_read_from_a_trimmed_word(text: str, allowed: bool) -> None:
    plugin = ready({"allow.everyone.if.no.acl.found": text})
    assert asks(plugin, ALICE, "orders") == [ALLOWED if allowed else DENIED]


@pytest.mark.behaviour("B002")
async def test_nothing_is_allowed_without_a_default_result() -> None:
    assert asks(ready({}), ALICE, "orders") == [DENIED]


@pytest.mark.behaviour("B003")
async def test_new_settings_take_effect_and_the_acls_stay() -> None:
    plugin = ready({"super.users": "User:root"}, allow(TOPIC, "orders", READ))
    plugin.configure({"super.users": "User:other", "allow.everyone.if.no.acl.found": "true"})
    assert plugin.acl_count == 1
    assert list(plugin.acls(EVERY_BINDING)) == [ORDERS]
    assert asks(plugin, ROOT, "unheard-of") == [ALLOWED]
    stranger = AuthorizableRequestContext(KafkaPrincipal("User", "root"), "10.0.0.2")
    plugin.reconfigure({"super.users": "User:other"})
    assert asks(plugin, stranger, "unheard-of") == [DENIED]
    assert asks(plugin, ALICE, "orders", "pay") == [ALLOWED, DENIED]


async def test_invalid_settings_change_nothing() -> None:
    plugin = ready({"super.users": "User:root"})
    wrong = {"super.users": "nobody", "allow.everyone.if.no.acl.found": "true"}
    assert plugin.reconfigurable_configs() == {"super.users", "allow.everyone.if.no.acl.found"}
    with pytest.raises(AclValueError):
        plugin.validate_reconfiguration(wrong)
    with pytest.raises(AclValueError):
        plugin.reconfigure(wrong)
    assert plugin.standard.super_users == {"User:root"}
    assert asks(plugin, ALICE, "orders") == [DENIED]


@pytest.mark.behaviour("B022")
async def test_only_super_users_get_answers_before_the_acls_are_loaded() -> None:
    plugin = made(None, ORDERS)
    assert asks(plugin, ROOT, "orders", "pay") == [ALLOWED, ALLOWED]
    with pytest.raises(AuthorizerNotReadyError):
        asks(plugin, ALICE, "orders")
    plugin.complete_initial_load()
    assert asks(plugin, ALICE, "orders") == [ALLOWED]


@pytest.mark.behaviour("B023", "B025")
async def test_early_start_listeners_start_immediately_and_others_after_the_load() -> None:
    plugin = made()
    futures = plugin.start(info("CONTROLLER"))
    assert set(futures) == {CLIENTS, CONTROLLER}
    async with asyncio.timeout(PATIENCE_S):
        await futures[CONTROLLER]
        waiting = asyncio.ensure_future(futures[CLIENTS])
        await asyncio.sleep(0)
        assert not waiting.done()
        plugin.complete_initial_load()
        await waiting
    # the first word counts
    plugin.complete_initial_load(OSError("too late"))
    await futures[CLIENTS]


@pytest.mark.behaviour("B024")
async def test_a_failed_load_fails_the_waiting_starts() -> None:
    plugin = made(None, ORDERS)
    futures = plugin.start(info("CONTROLLER"))
    plugin.complete_initial_load(OSError("the disk is gone"))
    await futures[CONTROLLER]
    with pytest.raises(OSError, match="the disk is gone"):
        await futures[CLIENTS]
    with pytest.raises(AuthorizerNotReadyError):
        asks(plugin, ALICE, "orders")


@pytest.mark.parametrize("ends", ["closed", "failed"])
async def test_a_close_before_the_load_leaves_no_unretrieved_exception(ends: str) -> None:
    lost: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    plugin = made()
    if ends == "closed":
        plugin.close()
    else:
        plugin.complete_initial_load(OSError("no"))
    del plugin
    gc.collect()
    assert lost == []


async def test_a_close_before_the_load_fails_the_waiting_starts_as_in_kafka() -> None:
    plugin = made()
    waiting = plugin.start(info())[CLIENTS]
    plugin.close()
    with pytest.raises(KafkaApiError, match="closed before the initial load could complete") as raised:
        await waiting
    assert raised.value.code is ErrorCode.request_timed_out
    plugin.close()


class Mutator:
    """A metadata log of two results, or none."""

    def __init__(self, error: Exception | None = None, missing: int = 0) -> None:
        self.error = error
        self.missing = missing
        self.contexts: list[AuthorizableRequestContext] = []

    async def create_acls(
        self, context: AuthorizableRequestContext, bindings: Sequence[AclBinding]
    ) -> Sequence[AclCreateResult]:
        self.contexts.append(context)
        if self.error is not None:
            raise self.error
        refused = AclCreateResult(KafkaApiError(ErrorCode.invalid_request, "no"))
        return [SUCCESS if each == ORDERS else refused for each in bindings[self.missing :]]

    async def delete_acls(
        self, context: AuthorizableRequestContext, filters: Sequence[AclBindingFilter]
    ) -> Sequence[AclDeleteResult]:
        self.contexts.append(context)
        if self.error is not None:
            raise self.error
        refused = AclDeleteResult(exception=KafkaApiError(ErrorCode.invalid_request, "no"))
        return [AclDeleteResult.of([ORDERS]) if each.matches(ORDERS) else refused for each in filters][
            self.missing :
        ]


def with_mutator(mutator: Mutator) -> StandardAuthorizerPlugin:
    plugin = ready()
    plugin.mutator = mutator
    return plugin


PAY_FILTER = AclBindingFilter(entry_filter=AccessControlEntryFilter(principal="User:pay"))


@pytest.mark.behaviour("B038", "B040")
async def test_each_item_of_a_change_has_its_own_result() -> None:
    mutator = Mutator()
    plugin = with_mutator(mutator)
    first, second, third = await plugin.create_acls(ALICE, [ORDERS, PAY, ORDERS])
    assert (first, third) == (SUCCESS, SUCCESS)
    assert second.exception is not None
    assert (second.exception.code, second.exception.message) == (ErrorCode.invalid_request, "no")
    refused, deleted = await plugin.delete_acls(ALICE, [PAY_FILTER, EVERY_BINDING])
    assert refused.exception is not None
    assert [each.acl_binding for each in deleted.acl_binding_delete_results] == [ORDERS]
    assert mutator.contexts == [ALICE, ALICE]


FAILURES = [
    (KafkaApiError(ErrorCode.policy_violation, "too many"), ErrorCode.policy_violation, "too many"),
    (OSError("secret path"), ErrorCode.unknown_server_error, None),
    (KafkaApiError(ErrorCode.unknown_server_error, "inner"), ErrorCode.unknown_server_error, None),
]


@pytest.mark.behaviour("B039", "B041")
@pytest.mark.parametrize(("error", "code", "message"), FAILURES)
async def test_a_failed_change_is_the_result_of_every_item(
    error: Exception, code: ErrorCode, message: str | None
) -> None:
    plugin = with_mutator(Mutator(error))
    created = await plugin.create_acls(ALICE, [ORDERS, PAY])
    deleted = await plugin.delete_acls(ALICE, [EVERY_BINDING, EVERY_BINDING, PAY_FILTER])
    assert (len(created), len(deleted)) == (2, 3)
    for exception in [*(each.exception for each in created), *(each.exception for each in deleted)]:
        assert exception is not None
        assert (exception.code, exception.message) == (code, message)


async def test_too_few_results_are_an_error() -> None:
    plugin = with_mutator(Mutator(missing=1))
    created = await plugin.create_acls(ALICE, [ORDERS, ORDERS])
    deleted = await plugin.delete_acls(ALICE, [EVERY_BINDING, EVERY_BINDING])
    exceptions = [*(each.exception for each in created), *(each.exception for each in deleted)]
    codes = [each and each.code for each in exceptions]
    assert codes == [ErrorCode.unknown_server_error] * 4


async def test_changes_need_a_log() -> None:
    [result] = await ready().create_acls(ALICE, [ORDERS])
    assert result.exception is not None
    assert result.exception.code is ErrorCode.not_controller


@pytest.mark.behaviour("B028")
async def test_decisions_and_acls_are_counted() -> None:
    now_ms = 0
    plugin = StandardAuthorizerPlugin(
        asyncio.get_running_loop().create_future, metrics=AuthorizerMetrics(lambda: now_ms)
    )
    plugin.standard.load_snapshot([(UUID(int=1), ORDERS)])
    plugin.complete_initial_load()
    asks(plugin, ALICE, "orders", "pay", "pay")
    assert plugin.authorize_by_resource_type(ALICE, READ, TOPIC) is ALLOWED
    now_ms = 60_000 - 1
    allowed, denied, requests = plugin.metrics.rates().values()
    assert (round(allowed, 2), round(denied, 2), round(requests, 2)) == (2.0, 2.0, 4.0)
    assert plugin.acl_count == 1


def test_an_authorizer_without_an_acl_count_returns_minus_one() -> None:
    assert SpecAuthorizer().acl_count == -1
