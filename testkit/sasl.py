"""A listener's SASL machine with known users, a turning clock, and requests as bytes."""

import itertools
import random
import uuid
from collections.abc import Mapping
from typing import Any

from kustos.auth import (
    Authenticated,
    Close,
    Fail,
    PlainServer,
    PlainUsers,
    RunInThread,
    SaslClientMachine,
    SaslServerMachine,
    SaslServerSettings,
    ScramDecoys,
    ScramHash,
    ScramServer,
    SendFrame,
)
from kustos.auth.mechanisms import ClientMechanism, MechanismFactory
from kustos.auth.mechanisms.base import BlockingStep, MechanismStep
from kustos.auth.mechanisms.scram_keys import ServerCredential
from kustos.runtime import random_text
from kustos.wire import (
    Message,
    codec_versions,
    read_response_header,
    request_codec,
    request_frame,
    response_codec,
    response_header_is_flexible,
)
from testkit.clocks import ManualClock

PASSWORD = "alice-s3cret"
OTHER_PASSWORD = "b0b-s3cret"
SECRET = b"decoy-secret-of-at-least-32-bytes"
NAMES = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class SeededEntropy:
    """Random bytes, the same for a seed."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)

    def token_bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.token_bytes(16), version=4)


class StoredCredential:
    """A user's SCRAM credential, as the metadata holds it."""

    def __init__(self, scram_hash: ScramHash, password: str, salt: bytes, iterations: int = 4096) -> None:
        salted = scram_hash.salted_password(password.encode(), salt, iterations)
        self.salt, self.iterations = salt, iterations
        self.stored_key = scram_hash.digest(scram_hash.hmac(salted, b"Client Key"))
        self.server_key = scram_hash.hmac(salted, b"Server Key")


def stored(users: Mapping[tuple[str, ScramHash], str], iterations: int = 4096) -> dict[Any, StoredCredential]:
    entropy = SeededEntropy(99)
    return {
        key: StoredCredential(key[1], password, random_text(entropy).encode(), iterations)
        for key, password in users.items()
    }


CREDENTIALS = stored(
    {
        ("alice", ScramHash.SHA_256): PASSWORD,
        ("alice", ScramHash.SHA_512): PASSWORD,
        ("only512", ScramHash.SHA_512): OTHER_PASSWORD,
        ("a=b,c", ScramHash.SHA_256): OTHER_PASSWORD,
        ("*", ScramHash.SHA_256): PASSWORD,
    }
)


def lookup(user: str, scram_hash: ScramHash) -> ServerCredential | None:
    return CREDENTIALS.get((user, scram_hash))


def mechanisms(entropy: SeededEntropy | None = None) -> dict[str, MechanismFactory]:
    entropy = entropy or SeededEntropy()
    users = PlainUsers({"alice": PASSWORD, "bob": OTHER_PASSWORD, "*": PASSWORD}, entropy)
    made: dict[str, MechanismFactory] = {"PLAIN": PlainServer.factory(users)}
    for scram_hash in ScramHash:
        made[scram_hash.mechanism_name] = ScramServer.factory(
            scram_hash, lookup, ScramDecoys(SECRET), entropy
        )
    return made


def api_versions_body(version: int) -> bytes:
    codec = response_codec(18, version)
    entry = codec.struct("ApiVersion")
    return codec.encode(codec.new(api_keys=[entry(api_key=18, min_version=0, max_version=4)]))


def machine(clock: ManualClock | None = None, **settings: Any) -> SaslServerMachine:
    return SaslServerMachine(
        SaslServerSettings(**settings), mechanisms(), api_versions_body, clock or ManualClock(1_000_000)
    )


def request(api_key: int, version: int, correlation_id: int = 5, **fields: Any) -> bytes:
    """A whole request without its length."""
    codec = request_codec(api_key, version)
    return request_frame(codec, api_key, correlation_id, "test", codec.encode(codec.new(**fields)))[4:]


def versions_request(
    version: int = 4, name: str = "kustos-test", correlation_id: int = 5, **fields: object
) -> bytes:
    software = {"client_software_name": name, "client_software_version": "1.0"} if version >= 3 else {}
    return request(18, version, correlation_id, **software, **fields)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return request(17, version, mechanism=mechanism)


def token(data: bytes, version: int = 2) -> bytes:
    return request(36, version, auth_bytes=data)


def response(frame: bytes, api_key: int, version: int, correlation_id: int = 5) -> Message:
    """The body of a whole response, its length and correlation id checked."""
    assert int.from_bytes(frame[:4]) == len(frame) - 4
    codec = response_codec(api_key, version)
    got, offset = read_response_header(frame[4:], response_header_is_flexible(api_key, codec))
    assert got == correlation_id
    return codec.decode(frame[4:], offset).message


def only_send(effects: tuple[object, ...]) -> bytes:
    frames = [effect.data for effect in effects if isinstance(effect, SendFrame)]
    assert len(frames) == 1
    return frames[0]


def settled(step: MechanismStep | BlockingStep) -> MechanismStep:
    """Return the step of an exchange, after what it does off the event loop."""
    while isinstance(step, BlockingStep):
        step = step.run()
    return step


def log_in(
    server: SaslServerMachine, mechanism: ClientMechanism, version: int = 2
) -> Authenticated | Fail | Close:
    """Wire a client machine to a server machine until one of them is done; no network."""
    client = SaslClientMachine(mechanism, version)
    asked = client.start()
    first = True
    for correlation_id in itertools.count(1):
        codec = request_codec(asked.api_key, asked.api_version)
        frame = request_frame(codec, asked.api_key, correlation_id, "c", asked.body)[4:]
        effects = server.begin_reauthentication(frame) if first else None
        effects = server.receive(frame) if effects is None else effects
        first = False
        while isinstance(effects[-1], RunInThread):
            effects = server.resume(effects[-1].step)
        last = effects[-1]
        if isinstance(last, Close | Fail):
            return last
        answer_codec = response_codec(asked.api_key, asked.api_version)
        data = only_send(effects)[4:]
        _, offset = read_response_header(data, answer_codec.flexible)
        following = client.receive(data[offset:])
        if following is None:
            assert isinstance(last, Authenticated)
            assert client.is_complete
            assert client.session_lifetime_ms == (last.session_lifetime_ms if version else 0)
            return last
        asked = following
    raise AssertionError("unreachable")


def refusal(frame: bytes, version: int = 2) -> tuple[int, str]:
    body = response(frame, 36, version)
    return body.error_code, body.error_message


UNSUPPORTED_VERSIONS_REQUEST = b"\x00\x12\x00\x63\x00\x00\x00\x05\x00\x04test\x00" + b"whatever"
assert codec_versions(18) == (0, 5)
