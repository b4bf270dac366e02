"""Changes on their way to a controller that is unlucky, unwilling or strange."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kustos.acl import KafkaPrincipal
from kustos.authorizer import AuthorizableRequestContext
from kustos.client import ClientSettings, ConnectionLimits
from kustos.client.quorum.follower import QuorumConnection, QuorumFollower, retry_wait_ms
from kustos.client.quorum.forwarding import (
    ControllerForwarder,
    Forwarded,
    ForwardingRefusedError,
    QuorumUnavailableError,
    envelope_of,
    is_unready,
)
from kustos.metadata.directory.format import format_directory
from kustos.metadata.quorum import FollowedStore
from kustos.protocol.envelopes import principal_bytes
from kustos.runtime import FileSystemStorage, SystemClock, SystemEntropy
from kustos.wire import ErrorCode, Message, request_codec, response_codec, response_frame
from kustos.wire.api_keys import ApiKey
from testkit.quorum.fake_controller import FakeController
from testkit.quorum.model import CLUSTER_ID, Cluster

CREATE = ApiKey.CREATE_ACLS
NOBODY = "the controllers do not answer"
ANN = AuthorizableRequestContext(KafkaPrincipal("User", "ann"), "10.1.2.3", client_id="c", correlation_id=41)
WAIT_S = 60.0
PATIENT_MS = 60_000
TIMES_MS = (300, 3_000, 30_000)
"""Tried in turn where time is to run out: on a busy machine the first may be over before anything is done."""


def creation() -> Forwarded:
    codec = request_codec(CREATE, 3)
    item = codec.struct("AclCreation")(resource_type=2, resource_name="t", principal="User:ann", host="*")
    return Forwarded(CREATE, 3, codec.new(creations=[item]), ANN)


def enveloped(code: int = 0, correlation_id: int = 41, error: int = 0) -> Message:
    """Return the answer to an Envelope around one creation that came to this code."""
    codec = response_codec(CREATE, 3)
    result = codec.struct("AclCreationResult")(error_code=code)
    frame = response_frame(CREATE, codec, correlation_id, codec.encode(codec.new(results=[result])))
    data = None if error else frame[4:]
    return response_codec(ApiKey.ENVELOPE, 0).new(response_data=data, error_code=error)


class World:
    """A follower of one controller, which the model plays and a script spoils."""

    def __init__(self, directory: Path, controller: FakeController, cluster: Cluster) -> None:
        address = controller.address
        client = ClientSettings.from_properties(f"{address.host}:{address.port}", {})
        limits = ConnectionLimits(connect_timeout_ms=PATIENT_MS, request_timeout_ms=PATIENT_MS)
        client = replace(client, limits=limits)
        entropy = SystemEntropy()
        self.controller, self.cluster, self.client, self.entropy = controller, cluster, client, entropy
        self.caught_up = asyncio.Event()
        self.store = FollowedStore.open(directory, FileSystemStorage(), SystemClock())
        self.follower = QuorumFollower(self.store, client, entropy, lambda _: self.caught_up.set())
        self.task = asyncio.ensure_future(self.follower.run())

    def forwarder(
        self, timeout_ms: int = PATIENT_MS, in_force: Callable[[], bool] = lambda: True
    ) -> ControllerForwarder:
        connection = QuorumConnection(self.client, self.entropy)
        return ControllerForwarder(self.store, self.follower, connection, self.entropy, timeout_ms, in_force)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.follower.close()
        self.store.close()


@asynccontextmanager
async def world(tmp_path: Path) -> AsyncIterator[World]:
    format_directory(tmp_path / "metadata", cluster_id=CLUSTER_ID)
    cluster = Cluster()
    cluster.copy(cluster.nodes[1])
    leader = cluster.nodes[0]
    async with FakeController(leader.fetch) as controller:
        # the only controller leads, whatever its number in the model is
        controller.fetch = lambda asked: leader.fetch(asked)
        made = World(tmp_path / "metadata", controller, cluster)
        made.store.machine.epoch = leader.epoch
        try:
            async with asyncio.timeout(WAIT_S):
                await made.caught_up.wait()
            yield made
        finally:
            await made.close()


async def unavailable(made: World, words: str, in_force: Callable[[], bool] = lambda: True) -> None:
    """Assert that a change ends with its time, and in these words once anything was done within it."""
    for timeout_ms in TIMES_MS:
        made.controller.asked.clear()
        with pytest.raises(QuorumUnavailableError) as caught:
            await made.forwarder(timeout_ms, in_force).forward(creation())
        if not str(caught.value).endswith(NOBODY):
            break
    assert re.search(words, str(caught.value))


def codes(answer: Message) -> list[int]:
    return [each.error_code for each in answer.results]


def test_an_envelope_holds_the_request_the_principal_and_the_address() -> None:
    envelope = envelope_of(creation())
    assert envelope.request_principal == b"\x00\x00" + b"\x05User" + b"\x04ann" + b"\x00\x00"
    assert envelope.client_host_address == bytes((10, 1, 2, 3))
    # key, version, correlation id, client id, tags: the header as the client sent it
    assert envelope.request_data.startswith(b"\x00\x1e\x00\x03\x00\x00\x00\x29\x00\x01c\x00")
    local = replace(ANN, host="fe80::1%eth0")
    assert len(envelope_of(replace(creation(), context=local)).client_host_address) == 16


def test_a_principal_of_a_token_says_so() -> None:
    principal = KafkaPrincipal("User", "ann", token_authenticated=True)
    assert principal_bytes(principal).endswith(b"\x01\x00")


async def test_the_answer_waits_until_what_was_committed_is_applied(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        leader = made.cluster.nodes[0]

        def change(_: Message) -> Message:
            made.cluster.append(leader, 3)
            made.cluster.copy(made.cluster.nodes[1])
            return enveloped()

        made.controller.envelope = change
        assert codes(await made.forwarder().forward(creation())) == [0]
        assert made.store.last_offset == leader.high_watermark - 1


@pytest.mark.parametrize("error", [ErrorCode.not_controller, ErrorCode.unknown_server_error])
async def test_a_controller_that_moves_is_asked_again(tmp_path: Path, error: ErrorCode) -> None:
    async with world(tmp_path) as made:
        answers = iter([enveloped(error=error.value), enveloped(error=error.value), enveloped()])
        made.controller.envelope = lambda _: next(answers)
        assert codes(await made.forwarder().forward(creation())) == [0]


async def test_a_controller_whose_authorizer_is_not_ready_is_asked_again(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        answers = iter([enveloped(-1), enveloped(-1), enveloped(31)])
        made.controller.envelope = lambda _: next(answers)
        assert codes(await made.forwarder().forward(creation())) == [31]


async def test_what_stays_unready_is_answered_as_it_was(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.controller.envelope = lambda _: enveloped(-1)
        for timeout_ms in TIMES_MS:
            with suppress(QuorumUnavailableError):
                assert codes(await made.forwarder(timeout_ms).forward(creation())) == [-1]
                return
        raise AssertionError("no answer came in time")


async def test_a_change_that_nobody_answers_ends_with_its_time(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        with capture_logs() as logs, pytest.raises(QuorumUnavailableError) as caught:
            await made.forwarder(timeout_ms=300).forward(creation())
    assert str(caught.value) == (
        "the metadata quorum did not complete the change within 300 ms, it may still take effect later: "
        + NOBODY
    )
    assert logs == [
        {"event": "a change failed", "log_level": "warning", "api": "CreateAcls", "reason": NOBODY}
    ]


async def test_without_a_leader_a_change_says_so(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.task.cancel()
        made.store.machine.leader = None
        await unavailable(made, r": no leader of the metadata quorum is known$")


@pytest.mark.parametrize(
    "silence",
    [{"error_code": ErrorCode.unknown_server_error.value, "high_watermark": 1}, {"high_watermark": -1}],
)
async def test_a_leader_that_does_not_tell_its_high_watermark_leaves_a_change_open(
    silence: dict[str, int], tmp_path: Path
) -> None:
    async with world(tmp_path) as made:
        made.task.cancel()
        leader, address = made.cluster.nodes[0], made.controller.address
        made.controller.envelope = lambda _: enveloped()

        def fetch(asked: Message) -> Message:
            answer = leader.fetch(asked)
            answer.responses[0].partitions[0] = answer.responses[0].partitions[0].replace(**silence)
            return answer

        made.controller.fetch = fetch
        await unavailable(made, f"`{address}` answers without a high watermark$")
        assert made.controller.asked.count(ApiKey.ENVELOPE) == 1, "it was made, and is not made twice"


async def test_what_is_asked_for_the_high_watermark_is_answered_at_once(tmp_path: Path) -> None:
    asked_for: list[Message] = []
    async with world(tmp_path) as made:
        made.task.cancel()
        leader = made.cluster.nodes[0]
        made.controller.envelope = lambda _: enveloped()

        def fetch(asked: Message) -> Message:
            asked_for.append(asked)
            return leader.fetch(asked)

        made.controller.fetch = fetch
        await made.forwarder().forward(creation())
    assert asked_for[-1].max_wait == 0
    # a leader holds its answer back from whoever knows its high watermark (KIP-1166): we tell none
    assert asked_for[-1].topics[0].partitions[0].high_watermark == -1


async def test_a_change_that_does_not_come_into_force_here_is_not_acknowledged(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.controller.envelope = lambda _: enveloped()
        await unavailable(made, ": the change is not in force on this node yet$", lambda: False)
        # it was made but once
        assert made.controller.asked.count(ApiKey.ENVELOPE) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ErrorCode.cluster_authorization_failed,
            "the controller `{}` does not let this node forward requests; it needs CLUSTER_ACTION on the "
            "cluster there",
        ),
        (ErrorCode.unsupported_version, "`{}` answered UNSUPPORTED_VERSION"),
    ],
)
async def test_a_controller_that_takes_no_envelopes_of_ours_is_no_matter_of_time(
    tmp_path: Path, error: ErrorCode, words: str
) -> None:
    async with world(tmp_path) as made:
        made.controller.envelope = lambda _: enveloped(error=error.value)
        with pytest.raises(ForwardingRefusedError) as caught:
            await made.forwarder().forward(creation())
        assert str(caught.value) == words.format(made.controller.address)


@pytest.mark.parametrize(
    ("strange", "words"),
    [
        (
            lambda: enveloped(correlation_id=42),
            "an Envelope contains the answer to another request$",
        ),
        (
            lambda: response_codec(ApiKey.ENVELOPE, 0).new(response_data=None),
            "the answer to an Envelope is empty$",
        ),
        (
            lambda: response_codec(ApiKey.ENVELOPE, 0).new(response_data=b"\x00\x00\x00\x29\xff"),
            "the answer in an Envelope cannot be parsed: the message ends inside a varint$",
        ),
    ],
)
async def test_a_strange_answer_is_none(tmp_path: Path, strange: Callable[[], Message], words: str) -> None:
    async with world(tmp_path) as made:
        made.controller.envelope = lambda _: strange()
        await unavailable(made, words)


async def test_a_frozen_controller_is_left_once_another_leads(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        under_way = asyncio.ensure_future(made.forwarder().forward(creation()))
        await asyncio.to_thread(lambda: None)
        async with FakeController(made.cluster.nodes[0].fetch) as other:
            other.envelope = lambda _: enveloped()
            made.task.cancel()
            made.store.machine.leader = other.address
            assert codes(await under_way) == [0]


def test_only_what_failed_wholly_and_without_a_name_is_not_ready() -> None:
    codec = response_codec(CREATE, 3)
    result = codec.struct("AclCreationResult")
    told = {
        (): False,
        (-1,): True,
        (-1, -1): True,
        (-1, 0): False,
        (31,): False,
    }
    for found, unready in told.items():
        assert is_unready(codec.new(results=[result(error_code=code) for code in found])) is unready
    tokens = response_codec(ApiKey.RENEW_DELEGATION_TOKEN, 2)
    assert is_unready(tokens.new(error_code=-1))
    assert not is_unready(tokens.new(error_code=62))


def test_waits_grow_to_a_second_and_differ() -> None:
    class Fixed:
        def __init__(self, byte: bytes) -> None:
            self.byte = byte

        def token_bytes(self, size: int) -> bytes:
            return self.byte * size

    shortest, longest = Fixed(b"\x00"), Fixed(b"\xff")
    assert [retry_wait_ms(tries, longest) for tries in (0, 1, 2, 4, 5, 50)] == [50, 100, 200, 800, 1000, 1000]  # type: ignore[arg-type]
    assert retry_wait_ms(5, shortest) == 500  # type: ignore[arg-type]
