"""Theorems about the host names of brokers: a name leads to one broker or to none, whatever its bytes."""

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kustos.gateway.listener.server_names import names_host
from kustos.gateway.upstream.host_names import (
    NODE_ID,
    NODE_ID_MAX,
    BrokerHostPattern,
    BrokerHosts,
    UnknownHostError,
    is_host_name,
)
from testkit.hellos import client_hello

PIECES = st.text(alphabet="abz019-.", max_size=12)
NODE_IDS = st.integers(0, 20) | st.integers(0, NODE_ID_MAX)
SPELLINGS = st.sampled_from((str, str.upper, str.title, lambda name: name + "."))


@st.composite
def patterns(draw: st.DrawFn) -> BrokerHostPattern:
    text = draw(PIECES) + NODE_ID + draw(PIECES) + draw(st.sampled_from(("", ".example.com", ".x", "-b.y.z")))
    try:
        return BrokerHostPattern.parse(text)
    except ValueError:
        assume(False)
        raise


names = st.text(max_size=300) | st.from_regex(r"\A[a-zA-Z0-9.-]{1,40}\Z")


@given(patterns(), NODE_IDS, SPELLINGS)
def test_a_broker_is_found_by_its_name_in_any_case(
    pattern: BrokerHostPattern, node_id: int, spell: object
) -> None:
    assert callable(spell)
    name = pattern.host_of(node_id)
    assert is_host_name(name)
    assert pattern.node_of(name) == node_id
    hosts = BrokerHosts("10.0.0.1", pattern, 443)
    assert hosts.advertised(node_id, "inside", 9092) == (name, 443)
    assert hosts.broker_of(spell(name)) == node_id


@settings(max_examples=500)
@given(patterns(), NODE_IDS, st.data())
def test_a_name_leads_to_a_broker_only_if_that_broker_has_it(
    pattern: BrokerHostPattern, node_id: int, data: st.DataObject
) -> None:
    own = pattern.host_of(node_id)
    at = data.draw(st.integers(0, len(own)))
    cut = data.draw(st.integers(0, 2))
    changed = own[:at] + data.draw(st.text(max_size=3)) + own[at + cut :]
    name = data.draw(names | st.just(changed))
    bootstrap = "bootstrap.example.org"
    assume(name.lower().removesuffix(".") != bootstrap)
    found, refusal = None, ""
    try:
        found = BrokerHosts(bootstrap, pattern, 443).broker_of(name)
    except UnknownHostError as error:
        refusal = str(error)
    if found is None:
        # whatever the client wrote, the log's line is short, printable ASCII
        assert re.fullmatch(r"[ -~]{1,700}", refusal)
    else:
        assert pattern.host_of(found) == name.lower().removesuffix(".")


@given(patterns(), NODE_IDS, NODE_IDS)
def test_two_brokers_have_two_names(pattern: BrokerHostPattern, one: int, other: int) -> None:
    assert (pattern.host_of(one) == pattern.host_of(other)) == (one == other)


@given(st.from_regex(r"\A[a-z0-9.-]{1,60}\Z"), st.from_regex(r"\A[a-z0-9.-]{1,60}\Z"))
def test_the_requested_name_is_the_one_in_the_client_hello(name: str, other: str) -> None:
    hello = client_hello(name.encode())
    assert names_host(hello, name)
    assert names_host(hello, other) == (name == other)
    assert not names_host(hello, None)
    assert names_host(client_hello(None), None)
    assert not names_host(client_hello(None), name)


@settings(max_examples=500)
@given(st.binary(max_size=400) | st.integers(0, 600), st.binary(max_size=3), st.integers(0, 600))
def test_a_malformed_client_hello_requests_no_name_that_it_does_not_contain(
    start: bytes | int, change: bytes, at: int
) -> None:
    hello = start if isinstance(start, bytes) else client_hello(b"broker-1.example.com")[:start]
    broken = hello[:at] + change + hello[at + len(change) :]
    if names_host(broken, "broker-2.example.com"):
        assert b"broker-2.example.com" in broken


@pytest.mark.parametrize(
    "text",
    [
        "broker.example.com",
        f"{NODE_ID}-{NODE_ID}.example.com",
        f"broker-{NODE_ID}",
        f"broker.example.{NODE_ID}",
        f"-{NODE_ID}.example.com",
        f"broker {NODE_ID}.example.com",
        f"bröker-{NODE_ID}.example.com",
        f"broker_{NODE_ID}.example.com",
        f"10.0.0.{NODE_ID}",
        f"{'a' * 54}{NODE_ID}.example.com",
        f"b-{NODE_ID}{'.long-label' * 23}",
        f"broker-{NODE_ID}.example.com:443",
        f"broker-{NODE_ID}.example.com.",
        "broker-$(nodeid).example.com",
        "",
    ],
)
def test_a_pattern_with_invalid_host_names_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"pattern has|not host names"):
        BrokerHostPattern.parse(text)
