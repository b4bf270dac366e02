"""Callback handlers and a mechanism of an installed package: good ones admit, broken ones deny."""

import hmac
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from examples.password_file import hash_of
from testkit.guarded.raw_client import SASL_AUTHENTICATE, SASL_HANDSHAKE, RawClient
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings
from testkit.paths import ROOT
from testkit.waiting import wait_until

OWN = "listener.name.sasl_plaintext."
HANDLER = "sasl.server.callback.handler.class"
PIN = "4711-4711-4711"
"""Longer than any port, process id or time: it must not be in a log by chance."""
SECRETS = ("guess-of-a-secret", "s3cret", "-with-an-ending", PIN)
MISBEHAVING = ("raises", "exits", "babbles")
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER,PIN",
    OWN + "plain." + HANDLER: "passwords",
    OWN + "plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required more="{PIN}";'
    ),
    OWN + "scram-sha-256." + HANDLER: "own_logins:Credentials",
    OWN + "oauthbearer." + HANDLER: "tokens",
    OWN + "pin.sasl.jaas.config": f'own_logins.Pins required alice="{PIN}";',
    "own.ending": "-with-an-ending",
    "super.users": "User:dora;User:alice",
    # what misbehaves is no guess, so nobody is slowed for it
    "kustos.failed.logins.per.ip.burst": "1",
}
LIMIT = "kustos.sasl.callback.timeout.ms"
PATIENT = {LIMIT: "60000"}
"""A good class that waits for a core must not be taken for one that hangs."""
HASTY = {LIMIT: "2000", f"{OWN}pin.{LIMIT}": "1000"}
"""Waited for in full where a class hangs."""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the package, installed by pip."""
    folder = tmp_path_factory.mktemp("installed")
    install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    source = str(ROOT / "testkit" / "own_logins")
    subprocess.run([sys.executable, *install, "--target", str(folder), source], check=True)
    return folder


@contextmanager
def served(
    directory: Path, kafka: KafkaNode, package: Path, processes: int, limits: dict[str, str]
) -> Iterator[KustosNode]:
    """Start a node that has the package, and these limits of time."""
    workers = {"kustos.workers": str(processes)}
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("PYTHONPATH", os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]))
        settings = KustosSettings(properties=SETTINGS | workers | limits)
        yield stack.enter_context(KustosNode(directory / "kustos", kafka.bootstrap, settings))


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, kafka: KafkaNode, package: Path
) -> Iterator[KustosNode]:
    """A node that waits long for the classes of the package."""
    with served(tmp_path_factory.mktemp("own"), kafka, package, request.param, PATIENT) as made:
        yield made


@pytest.fixture(params=[1, 2], ids=["one process", "two workers"])
def hasty(
    request: pytest.FixtureRequest, tmp_path: Path, kafka: KafkaNode, package: Path
) -> Iterator[KustosNode]:
    """A node that does not."""
    with served(tmp_path, kafka, package, request.param, HASTY) as made:
        yield made


def answer(node: KustosNode, mechanism: str, *tokens: bytes) -> tuple[int, str]:
    """Return the error and its text after these tokens."""
    with RawClient(node.bootstrap, "client") as client:
        assert int(client.ask(SASL_HANDSHAKE, 1, mechanism=mechanism).error_code) == 0
        for token in tokens:
            told = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=token)
        if int(told.error_code):
            assert client.is_closed()
        return int(told.error_code), told.error_message or ""


def pin(node: KustosNode, user: str, number: str) -> tuple[int, str]:
    with RawClient(node.bootstrap, "client") as client:
        client.ask(SASL_HANDSHAKE, 1, mechanism="PIN")
        challenge = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=user.encode())
        proof = hmac.digest(number.encode(), challenge.auth_bytes, "sha256")
        told = client.ask(SASL_AUTHENTICATE, 1, auth_bytes=proof)
        return int(told.error_code), told.error_message or told.auth_bytes.decode()


@pytest.mark.slow
@pytest.mark.behaviour("B236")
def test_classes_of_an_installed_package_admit_their_users(node: KustosNode) -> None:
    assert answer(node, "PLAIN", b"\0carol\0carol-with-an-ending" + PIN.encode()) == (0, "")
    assert answer(node, "OAUTHBEARER", b"n,,\x01auth=Bearer erin\x01\x01") == (0, "")
    assert pin(node, "alice", PIN) == (0, "welcome")
    admin = AdminClient(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "dora",
            "sasl.password": "dora-with-an-ending",
        }
    )
    assert admin.list_topics(timeout=60).brokers
    wait_until(
        lambda: {(each["mechanism"], each["principal_name"]) for each in node.security_events()},
        holds=lambda seen: seen >= {("PLAIN", "carol"), ("OAUTHBEARER", "erin"), ("PIN", "alice")},
        what="the logins are in the audit log",
    )
    assert 'successful_authentication_total{mechanism="PIN"}' in node.metrics()


@pytest.mark.slow
@pytest.mark.parametrize("how", MISBEHAVING)
def test_a_class_that_misbehaves_denies_and_tells_no_secret(node: KustosNode, how: str) -> None:
    be_denied(node, how)
    # others are served all the same
    assert pin(node, "alice", PIN) == (0, "welcome")
    tell_no_secret(node, how)


@pytest.mark.slow
def test_a_class_that_hangs_denies_and_tells_no_secret(hasty: KustosNode) -> None:
    be_denied(hasty, "hangs")
    # others are served meanwhile, though a thread of each mechanism hangs, if theirs gets a core in time
    wait_until(
        lambda: pin(hasty, "alice", PIN), holds=lambda told: told == (0, "welcome"), what="alice is served"
    )
    tell_no_secret(hasty, "hangs")


def be_denied(node: KustosNode, how: str) -> None:
    """Log in by each mechanism as a user for whom its class misbehaves."""
    user = how.encode()
    unverified = "Authentication failed: credentials for user could not be verified"
    if how in {"exits", "hangs"}:
        unverified = (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism"
        )
    code, text = answer(node, "PLAIN", b"\0" + user + b"\0guess-of-a-secret")
    assert code == 58
    assert text.startswith(unverified)
    code, text = answer(node, "SCRAM-SHA-256", b"n,,n=" + user + b",r=abcdefgh")
    assert (code, "mechanism SCRAM-SHA-256" in text) == (58, True)
    code, text = answer(node, "OAUTHBEARER", b"n,,\x01auth=Bearer " + user + b"\x01\x01")
    assert (code, "mechanism OAUTHBEARER" in text) == (58, True)
    code, text = pin(node, how, "0815")
    assert (code, "mechanism PIN" in text) == (58, True)


def tell_no_secret(node: KustosNode, how: str) -> None:
    """Assert that neither the log nor the audit log has one, once the refusals are there."""
    wait_until(
        lambda: {each["mechanism"] for each in node.security_events() if each["claimed_name"] == how},
        holds=lambda seen: seen >= {"PLAIN", "PIN"},
        what="the refusals are in the audit log",
    )
    told = (node.directory / "kustos.log").read_text() + str(list(node.security_events()))
    assert not [secret for secret in SECRETS if secret in told]


@pytest.mark.slow
def test_the_words_of_a_mechanisms_refusal_go_to_the_client(node: KustosNode) -> None:
    assert pin(node, "alice", "0815") == (58, "the PIN is wrong")
    # that was a guess
    wait_until(lambda: is_throttled(node), what="every process counts it")


def is_throttled(node: KustosNode) -> bool:
    for _ in range(16):
        with RawClient(node.bootstrap, "client") as client:
            try:
                client.ask(SASL_HANDSHAKE, 1, mechanism="PIN")
            except (EOFError, BrokenPipeError, ConnectionResetError):
                continue
            return False
    return True


@pytest.mark.slow
def test_the_example_reads_its_file_anew_for_each_login(tmp_path: Path, kafka: KafkaNode) -> None:
    passwords = tmp_path / "passwords"

    def write(**users: str) -> None:
        salt = bytes(16)
        lines = (f"{user}:{salt.hex()}:{hash_of(word, salt).hex()}\n" for user, word in users.items())
        passwords.write_text("".join(lines))

    write(alice="old-secret")
    own = {
        "sasl.enabled.mechanisms": "PLAIN",
        OWN + "plain." + HANDLER: "examples.password_file.PasswordFile",
        "passwords.file": str(passwords),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        with KustosNode(tmp_path / "kustos", kafka.bootstrap, KustosSettings(properties=own)) as node:
            assert answer(node, "PLAIN", b"\0alice\0old-secret") == (0, "")
            write(alice="new-secret", bob="his-secret")
            refused = (58, "Authentication failed: Invalid username or password")
            assert answer(node, "PLAIN", b"\0alice\0old-secret") == refused
            assert answer(node, "PLAIN", b"\0alice\0new-secret") == (0, "")
            assert answer(node, "PLAIN", b"\0bob\0his-secret") == (0, "")
            assert answer(node, "PLAIN", b"\0carol\0his-secret") == refused
