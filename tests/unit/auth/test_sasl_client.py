"""The client side of SASL, and its errors after a refusal."""

import pytest

from kustos.auth import SaslClientError, SaslClientMachine, client_mechanism
from kustos.wire import response_codec
from testkit.sasl import PASSWORD, SeededEntropy


def begun(mechanism: str = "PLAIN") -> SaslClientMachine:
    client = SaslClientMachine(client_mechanism(mechanism, "alice", PASSWORD, SeededEntropy()))
    assert (client.start().api_key, PASSWORD in repr(client)) == (17, False)
    return client


def answer(api_key: int, version: int, **fields: object) -> bytes:
    codec = response_codec(api_key, version)
    return codec.encode(codec.new(**fields))


AGREED = answer(17, 1, mechanisms=["PLAIN"])


@pytest.mark.behaviour("B235", "B256")
def test_a_refusal_carries_the_servers_text_and_code_but_no_secret() -> None:
    client = begun()
    client.receive(AGREED)
    with pytest.raises(SaslClientError, match="Invalid username or password") as raised:
        client.receive(answer(36, 2, error_code=58, error_message="Invalid username or password"))
    assert raised.value.error_code == 58
    assert PASSWORD not in str(raised.value)
    with pytest.raises(SaslClientError, match="none was awaited"):
        client.receive(AGREED)


@pytest.mark.behaviour("B225")
def test_a_mechanism_not_enabled_is_named_with_the_enabled_ones() -> None:
    with pytest.raises(SaslClientError, match=r"`PLAIN`, only `A`, `B`") as raised:
        begun().receive(answer(17, 1, error_code=33, mechanisms=["B", "A"]))
    assert raised.value.error_code == 33


@pytest.mark.parametrize("body", [b"", b"\0", AGREED + b"x", answer(17, 1, error_code=34)])
def test_a_broken_handshake_answer_ends_the_login(body: bytes) -> None:
    with pytest.raises(SaslClientError):
        begun().receive(body)


def test_a_scram_server_that_ends_early_is_refused() -> None:
    client = begun("SCRAM-SHA-256")
    client.receive(AGREED)
    with pytest.raises(SaslClientError):
        client.receive(answer(36, 2))
    assert not client.is_complete


def test_a_plain_server_that_continues_is_refused() -> None:
    client = begun()
    client.receive(AGREED)
    with pytest.raises(SaslClientError, match="continues after"):
        client.receive(answer(36, 2, auth_bytes=b"more"))


def test_misuse_is_refused() -> None:
    with pytest.raises(SaslClientError, match="already begun"):
        begun().start()
    with pytest.raises(SaslClientError, match="`GSSAPI` is not supported"):
        client_mechanism("GSSAPI", "alice", PASSWORD, SeededEntropy())
    for name, password in (("", "x"), ("x", ""), ("a\0b", "x")):
        with pytest.raises(SaslClientError, match="empty or contain NUL"):
            client_mechanism("PLAIN", name, password, SeededEntropy())


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_password_that_is_not_text_is_refused_without_showing_it(mechanism: str) -> None:
    with pytest.raises(SaslClientError, match="not Unicode") as raised:
        client_mechanism(mechanism, "alice", PASSWORD + "\ud800", SeededEntropy())
    assert raised.value.__suppress_context__
    assert PASSWORD not in str(raised.value)
