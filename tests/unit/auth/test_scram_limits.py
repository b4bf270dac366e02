"""Values of SCRAM that an unauthenticated client chooses: message sizes, names, and the time of the
answer."""

import itertools
import re

import pytest

from kustos.auth import SaslMechanismError, ScramDecoys, ScramHash, ScramServer
from kustos.auth.mechanisms.scram import ScramClient
from kustos.auth.mechanisms.scram_messages import (
    EXTENSIONS_MAX,
    MESSAGE_MAX_BYTES,
    ClientFinal,
    ClientFirst,
    ScramSyntaxError,
    escape_name,
)
from testkit.sasl import OTHER_PASSWORD, PASSWORD, SECRET, SeededEntropy, settled, stored

OLD_NAME = re.compile(rb"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+")
OLD_BASE64 = re.compile(rb"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?")
"""Kafka's productions as patterns, which take many times as long."""


def accepts(message_type: type[ClientFirst | ClientFinal], message: bytes) -> bool:
    try:
        message_type.parse(message)
    except ScramSyntaxError:
        return False
    return True


def test_names_and_proofs_match_the_grammar() -> None:
    for text in map("".join, itertools.chain(*(itertools.product("=2CD3", repeat=n) for n in range(7)))):
        name = text.encode()
        assert accepts(ClientFirst, b"n,,n=%b,r=x" % name) == bool(OLD_NAME.fullmatch(name)), text
        assert accepts(ClientFirst, b"n,a=%b,n=x,r=x" % name) == bool(OLD_NAME.fullmatch(name)), text
    for text in map("".join, itertools.chain(*(itertools.product("Q=/", repeat=n) for n in range(9)))):
        data = text.encode()
        assert accepts(ClientFinal, b"c=%b,r=x,p=QQ==" % data) == bool(OLD_BASE64.fullmatch(data)), text
        assert accepts(ClientFinal, b"c=QQ==,r=x,p=%b" % data) == bool(OLD_BASE64.fullmatch(data)), text


def test_the_proof_is_what_comes_last() -> None:
    message = ClientFinal.parse(b"c=biws,r=x,p=QQ==,e=v,p=Ug==")
    assert (message.proof, message.without_proof) == (b"R", b"c=biws,r=x")
    for text in (
        b"c=biws,r=x,p=QQ==,e=v",
        b"c=biws,r=x",
        b"c=biws,r=x,p",
        b"p=QQ==",
        b",p=QQ==",
        b"c=biws,r=x,p=Q,Q=",
    ):
        assert not accepts(ClientFinal, text), text


def test_messages_have_a_size_limit() -> None:
    first, final = b"n,,n=a,r=%b", b"c=biws,r=%b,p=QQ=="
    for message_type, form in ((ClientFirst, first), (ClientFinal, final)):
        room = MESSAGE_MAX_BYTES - len(form % b"")
        assert accepts(message_type, form % (b"x" * room))
        assert not accepts(message_type, form % (b"x" * (room + 1)))
        many = b"x" + b",e=v" * EXTENSIONS_MAX
        assert accepts(message_type, form % many)
        assert not accepts(message_type, form % (many + b",e=v"))


def test_the_longest_name_is_read() -> None:
    name = "," * 32_767
    assert ClientFirst.parse(f"n,a={escape_name(name)},n=x,r=y".encode()).username == "x"
    assert ClientFirst.parse(f"n,,n={escape_name(name)},r=y".encode()).username == name


@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_a_login_fails_if_its_credential_is_removed(change: str) -> None:
    users = stored({("alice", ScramHash.SHA_256): PASSWORD})
    ours = ScramServer(ScramHash.SHA_256, lambda *who: users.get(who), ScramDecoys(SECRET), SeededEntropy())
    client = ScramClient(ScramHash.SHA_256, "alice", PASSWORD, SeededEntropy())
    final = client.respond(settled(ours.respond(client.first())).token)
    if change == "deleted":
        users.clear()
    else:
        users |= stored({("alice", ScramHash.SHA_256): OTHER_PASSWORD})
    with pytest.raises(SaslMechanismError, match="invalid client credentials"):
        ours.respond(final or b"")
