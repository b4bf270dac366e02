"""Requests in cluster mode while the quorum fails or is away."""

from types import SimpleNamespace
from typing import Any

import pytest

from kustos.acl import EVERY_BINDING, KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext, KafkaApiError
from kustos.client.quorum.forwarding import Forwarded, ForwardingRefusedError, QuorumUnavailableError
from kustos.gateway.apis.acls import AclApis
from kustos.gateway.apis.local import MetadataApis
from kustos.gateway.apis.purgatory import ALTER_ACLS, DelayedFuturePurgatory
from kustos.gateway.apis.shared import SharedApis
from kustos.gateway.quorum.source import FollowedQuorum
from kustos.gateway.store.forwarding import ForwardingMutator
from kustos.metadata.control import TokenRules
from kustos.metadata.image import EMPTY_IMAGE
from kustos.protocol import Guard, OfferedApis, Opened, RefusedFrameError
from kustos.wire import Message, response_codec
from testkit.acls.one_line import acl
from testkit.protocol.driver import OFFERED, GatewayAddresses
from tests.unit.protocol.protocol_requests import connection, frame

ALICE = KafkaPrincipal("User", "alice")
CONTEXT = AuthorizableRequestContext(ALICE, "10.0.0.1", "L", "SASL_PLAINTEXT")
AWAY = QuorumUnavailableError("the quorum is away")
UNWILLING = ForwardingRefusedError("needs CLUSTER_ACTION")
TIMED_OUT, NOT_AUTHORIZED = 7, 31


class Forwarder:
    """Returns or raises the given outcome."""

    def __init__(self, answer: Message | Exception) -> None:
        self.answer = answer
        self.asked: list[Forwarded] = []

    async def forward(self, forwarded: Forwarded) -> Message:
        self.asked.append(forwarded)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def opened(api_key: int, version: int, **fields: Any) -> Opened:
    driver = connection()
    session = driver.authorizer.session(ALICE, "10.0.0.1")
    made = Guard(session, lambda _: CONTEXT, GatewayAddresses(), OFFERED).open(
        frame(api_key, version, **fields)
    )
    assert isinstance(made, Opened)
    return made


async def stop() -> None:
    """Nothing is followed here."""


def source(forwarder: Any) -> FollowedQuorum:
    store: Any = SimpleNamespace(last_offset=-1, image=EMPTY_IMAGE, token_rules=TokenRules())
    return FollowedQuorum(store, forwarder, stop)


def mutator_of(forwarder: Any) -> ForwardingMutator:
    return source(forwarder).mutator


def apis(forwarder: Any) -> MetadataApis:
    acls = AclApis(None, DelayedFuturePurgatory(ALTER_ACLS, 1_000))
    shared = SharedApis(lambda: EMPTY_IMAGE, OfferedApis(dict).body, acls, lambda _: [])
    return MetadataApis(source(forwarder), shared)


async def answer(served: Any) -> dict[str, Any]:
    message = served if isinstance(served, Message) else await served
    return dict(message.to_dict())


DELETION = {"name": "ann", "mechanism": 1}


@pytest.mark.parametrize(("error", "code"), [(AWAY, TIMED_OUT), (UNWILLING, NOT_AUTHORIZED)])
async def test_a_failed_scram_change_reports_the_reason_for_each_user(error: Exception, code: int) -> None:
    asked = opened(51, 0, deletions=[DELETION], upsertions=[])
    answered = await answer(apis(Forwarder(error)).serve(asked))
    assert answered["results"] == [{"user": "ann", "error_code": code, "error_message": str(error)}]
    assert asked.exchange.response_codec.encode(await apis(Forwarder(error))._changed(asked))


async def test_a_failed_token_creation_names_the_requester() -> None:
    answered = await answer(apis(Forwarder(AWAY)).serve(opened(38, 3, renewers=[], max_lifetime=-1)))
    assert (answered["error_code"], answered["principal_name"]) == (TIMED_OUT, "alice")
    assert answered["token_requester_principal_name"] == "alice"


@pytest.mark.parametrize(
    ("api_key", "fields"),
    [(39, {"hmac": b"h", "renew_period": 1}), (40, {"hmac": b"h", "expiry_time_period": 1})],
)
async def test_a_failed_token_change_reports_the_error(api_key: int, fields: dict[str, Any]) -> None:
    answered = await answer(apis(Forwarder(AWAY)).serve(opened(api_key, 2, **fields)))
    assert (answered["error_code"], answered["expiry_timestamp"]) == (TIMED_OUT, -1)


async def test_a_request_is_forwarded_with_the_version_and_principal_of_its_client() -> None:
    made = response_codec(39, 1).new(expiry_timestamp=5)
    forwarder = Forwarder(made)
    asked = opened(39, 1, hmac=b"h", renew_period=9)
    assert await answer(apis(forwarder).serve(asked)) == made.to_dict()
    assert forwarder.asked == [Forwarded(39, 1, asked.exchange.request, CONTEXT)]


async def test_tokens_are_described_only_with_a_secret() -> None:
    answered = await answer(apis(Forwarder(AWAY)).serve(opened(41, 3, owners=None)))
    assert answered["error_code"] == 61


def test_a_request_for_upstream_is_rejected() -> None:
    with pytest.raises(RefusedFrameError):
        apis(Forwarder(AWAY)).serve(opened(3, 12, topics=[]))


@pytest.mark.parametrize(("error", "code"), [(AWAY, TIMED_OUT), (UNWILLING, NOT_AUTHORIZED)])
async def test_a_failed_acl_change_reports_the_reason(error: Exception, code: int) -> None:
    forwarder: Any = Forwarder(error)
    mutator = mutator_of(forwarder)
    for change in (mutator.create_acls(CONTEXT, []), mutator.delete_acls(CONTEXT, [])):
        with pytest.raises(KafkaApiError) as raised:
            await change
        assert (raised.value.code.value, raised.value.message) == (code, str(error))


async def test_each_acl_has_its_own_result() -> None:
    codec = response_codec(30, 3)
    result = codec.struct("AclCreationResult")
    results = [result(error_code=0), result(error_code=42, error_message="no"), result(error_code=9999)]
    forwarder: Any = Forwarder(codec.new(results=results))
    bindings = [acl("ALLOW READ User:alice TOPIC t")] * 3
    fine, bad, strange = await mutator_of(forwarder).create_acls(CONTEXT, bindings)
    assert fine.exception is None
    assert bad.exception is not None
    assert (bad.exception.code.value, bad.exception.message) == (42, "no")
    assert strange.exception is not None
    assert strange.exception.code.value == -1
    with pytest.raises(KafkaApiError):
        await mutator_of(forwarder).create_acls(CONTEXT, bindings[:2])


async def test_deletions_report_the_deleted_acls() -> None:
    codec = response_codec(31, 3)
    result, matching = codec.struct("DeleteAclsFilterResult"), codec.struct("DeleteAclsMatchingAcl")
    gone = matching(
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    results = [result(matching_acls=[gone]), result(error_code=42, error_message="no")]
    forwarder: Any = Forwarder(codec.new(filter_results=results))
    first, second = await mutator_of(forwarder).delete_acls(CONTEXT, [EVERY_BINDING] * 2)
    assert [each.acl_binding for each in first.acl_binding_delete_results] == [
        acl("ALLOW READ User:alice TOPIC t")
    ]
    assert second.exception is not None
    assert second.exception.code.value == 42
