"""A SCRAM callback handler is called once per login, though the credential is used twice."""

from kustos.auth import Authenticated, SaslServerMachine, SaslServerSettings, ScramDecoys, ScramHash
from kustos.auth.callbacks import ScramServerCallbackHandler
from kustos.auth.mechanisms.scram import ScramClient
from kustos.auth.mechanisms.scram_keys import ServerCredential
from kustos.server.callbacks import CallbackHandlers
from kustos.server.settings.listeners import SaslListenerSettings
from kustos.server.settings.plugins import CallbackSettings
from testkit.clocks import ManualClock
from testkit.sasl import PASSWORD, SECRET, SeededEntropy, StoredCredential, api_versions_body, log_in

MECHANISM = ScramHash.SHA_256.mechanism_name


class Directory(ScramServerCallbackHandler):
    asked: list[str]
    made: "Directory"

    def __init__(self) -> None:
        self.asked = []
        self.users = {"alice": StoredCredential(ScramHash.SHA_256, PASSWORD, b"salt")}
        Directory.made = self

    def credential(self, username: str) -> ServerCredential | None:
        self.asked.append(username)
        return self.users.get(username)


async def test_a_handler_is_asked_once_for_each_login_and_again_for_the_next() -> None:
    sasl = SaslListenerSettings(
        (MECHANISM,), SaslServerSettings(), {}, callbacks={MECHANISM: CallbackSettings(Directory, 1000)}
    )
    entropy = SeededEntropy()
    factory = CallbackHandlers({}).factory("CLIENTS", sasl, MECHANISM, ScramDecoys(SECRET), entropy, None)
    assert factory is not None

    def admits(name: str) -> bool:
        machine = SaslServerMachine(
            sasl.server, {MECHANISM: factory}, api_versions_body, ManualClock(1_000_000)
        )
        client = ScramClient(ScramHash.SHA_256, name, PASSWORD, SeededEntropy())
        return isinstance(log_in(machine, client), Authenticated)

    assert admits("alice")
    assert not admits("nobody")
    assert Directory.made.asked == ["alice", "nobody"]
    Directory.made.users.clear()
    assert not admits("alice"), "what was found holds for one login"
    assert Directory.made.asked == ["alice", "nobody", "alice"]
