"""Nobody who tries names is told who exists: not by text, rounds or salts, on any worker or node."""

import base64
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kustos.wire import ApiKey
from testkit.conversations import Conversation, Heard, Side, play
from testkit.conversations.documents import SASL_PLAINTEXT, Step
from testkit.guarded.raw_client import RawClient
from testkit.kafka import KafkaNode
from testkit.kustos import KustosNode, KustosSettings

USERS = {"alice": "alice-secret", "admin": "admin-secret"}
SHARED = {
    "kustos.sasl.scram.decoy.secret": "shared by all nodes of the cluster",
    "delegation.token.secret.key": "the-token-s3cret",
    "connection.failed.authentication.delay.ms": "0",
}
TRIES = 8
"""Connections to each node: the kernel spreads them over the workers."""

UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture(scope="module")
def nodes(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaNode
) -> Iterator[tuple[KustosNode, KustosNode]]:
    """One with two workers, one without."""
    folder = tmp_path_factory.mktemp("nodes")

    def node(name: str, **more: str) -> KustosNode:
        return KustosNode(
            folder / name, kafka.bootstrap, KustosSettings(users=USERS, properties=SHARED | more)
        )

    with node("first", **{"kustos.workers": "2"}) as first, node("second") as second:
        yield first, second


def talk(node: KustosNode, *steps: Step) -> list[Heard]:
    side = Side("kustos", {SASL_PLAINTEXT: node.bootstrap}, {})
    return play(Conversation("enumeration", "a try", SASL_PLAINTEXT, steps, {}, None), side)


def scram(node: KustosNode, name: str, mechanism: str, *, token: bool = False) -> list[Heard]:
    """Guess a password; return what is answered."""
    extension = ",tokenauth=true" if token else ""
    return talk(
        node,
        Step("handshake", mechanism),
        Step("token", f"n,,n={name},r=${{mine}}{extension}"),
        Step("token", "c=biws,r=${nonce},p=${proof}", {"password": "a guess"}),
    )


def plain(node: KustosNode, name: str) -> list[Heard]:
    return talk(node, Step("handshake", "PLAIN"), Step("token", f"\0{name}\0a guess"))


def challenges(node: KustosNode, name: str, mechanism: str, *, token: bool = False) -> set[bytes]:
    """Return the salts and iterations that are shown for a name."""
    heard = [scram(node, name, mechanism, token=token)[1].token for _ in range(TRIES)]
    return {each.partition(b",s=")[2] for each in heard}


def token_of_alice(node: KustosNode) -> tuple[str, str]:
    with RawClient(node.bootstrap, "tokens").log_in("alice", USERS["alice"]) as client:
        made = client.ask(
            int(ApiKey.CREATE_DELEGATION_TOKEN),
            3,
            owner_principal_type=None,
            owner_principal_name=None,
            renewers=(),
            max_lifetime=timedelta(milliseconds=-1),
        )
    return made.token_id, base64.b64encode(made.hmac).decode()


def test_plain_tells_the_same(nodes: tuple[KustosNode, KustosNode]) -> None:
    for node in nodes:
        wrong, unknown = plain(node, "alice"), plain(node, "nobody")
        assert [(each.data, each.words) for each in unknown] == [(each.data, each.words) for each in wrong]
        assert wrong[-1].words == "closed"


@pytest.mark.behaviour("B219", "B220")
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_tells_the_same_in_as_many_rounds(nodes: tuple[KustosNode, KustosNode], mechanism: str) -> None:
    first, second = nodes
    token_id, hmac = token_of_alice(first)
    for node in nodes:
        tries = [
            scram(node, "alice", mechanism),
            scram(node, "nobody", mechanism),
            scram(node, token_id, mechanism, token=True),
            scram(node, UNKNOWN_ID, mechanism, token=True),
        ]
        # all but the salts
        assert len({tuple(each.words for each in heard) for heard in tries}) == 1
        assert len({(heard[0].data, heard[2].data, heard[3].data) for heard in tries}) == 1
        sizes = {heard[1].token.rpartition(b",i=")[2] for heard in tries}
        assert sizes == {b"4096"}
    # on every worker of the first and on the second, and the second has no such token
    for name, token in (("nobody", False), (UNKNOWN_ID, True), (token_id, True)):
        shown = challenges(first, name, mechanism, token=token)
        assert len(shown) == 1
        assert challenges(second, name, mechanism, token=token) == shown
    assert hmac not in (first.directory / "kustos.log").read_text()


def test_a_decoy_outlives_a_restart(tmp_path: Path, kafka: KafkaNode) -> None:
    settings = KustosSettings(users=USERS, properties={"delegation.token.secret.key": "s"})
    node = KustosNode(tmp_path, kafka.bootstrap, settings)
    shown = []
    for _ in range(2):
        with node:
            found = challenges(node, "nobody", "SCRAM-SHA-256")
            shown.append(found | challenges(node, UNKNOWN_ID, "SCRAM-SHA-512", token=True))
    assert len(shown[0]) == 2
    assert shown[0] == shown[1]
