"""The PROXY protocol in the settings and in a node: ACLs for a host apply to the client."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from kustos.acl import AclOperation
from kustos.client import SettingsError
from kustos.server.settings.node_settings import settings_from
from kustos.wire import ErrorCode
from kustos.wire.api_keys import ApiKey
from testkit.gateway.admin_node import PASSWORD, Talker, admin_node, on_cluster
from testkit.gateway.gateways import Caller
from tests.unit.server.test_settings import SASL

ON, FROM = "kustos.proxy.protocol", "kustos.proxy.protocol.addresses"
OWN = "listener.name.clients."
NOBODY = {
    "resource_type_filter": 1,
    "pattern_type_filter": 1,
    "principal_filter": "User:nobody",
    "operation": 1,
    "permission_type": 1,
}


def test_a_listener_takes_the_header_from_its_own_balancers() -> None:
    settings = settings_from(SASL | {OWN + ON: "true", OWN + FROM: "10.0.7.11, 10.0.8.0/28,::1"}, {})
    clients, inside = settings.listeners
    assert clients.proxies == (ip_network("10.0.7.11/32"), ip_network("10.0.8.0/28"), ip_network("::1/128"))
    assert inside.proxies is None


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({OWN + ON: "true"}, f"list the addresses of its balancers in `{OWN}{FROM}`"),
        ({OWN + ON: "true", OWN + FROM: " , "}, f"list the addresses of its balancers in `{OWN}{FROM}`"),
        ({FROM: "balancer.example.com"}, f"`{FROM}` is `balancer.example.com`"),
        ({FROM: "10.0.8.1/28"}, f"`{FROM}` is `10.0.8.1/28`"),
    ],
)
def test_wrong_balancers_keep_a_node_from_starting(keys: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(SASL | keys, {})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("addresses", "everybody"), [("0.0.0.0/0", "0.0.0.0/0"), ("10.0.0.1, ::/0", "::/0"), ("10.0.0.0/8", "")]
)
def test_a_header_from_everybody_is_warned_of(addresses: str, everybody: str) -> None:
    warnings = settings_from(SASL | {OWN + ON: "true", OWN + FROM: addresses}, {}).warnings
    words = f"from every address (`{everybody}` in `{FROM}`): each client may say which address it has"
    assert any(words in warning for warning in warnings) is bool(everybody)


async def error_for(port: int, client: str) -> int:
    """Return the error of DescribeAcls, which `User:alice` may send from 10.1.2.3 only."""
    caller = await Caller.at(port)
    caller.writer.write(f"PROXY TCP4 {client} 127.0.0.1 51234 9093\r\n".encode())
    talker = Talker(caller)
    await talker.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    await talker.ask(ApiKey.SASL_AUTHENTICATE, 1, auth_bytes=f"\0alice\0{PASSWORD}".encode())
    answer = await talker.ask(ApiKey.DESCRIBE_ACLS, 3, **NOBODY)
    caller.close()
    return int(answer.error_code)


async def test_an_acl_for_a_host_is_for_the_client_behind_the_balancer(tmp_path: Path) -> None:
    acls = on_cluster("alice", AclOperation.DESCRIBE, host="10.1.2.3")
    async with admin_node(
        tmp_path, acls=acls, kustos_proxy_protocol="true", kustos_proxy_protocol_addresses="127.0.0.1"
    ) as node:
        assert await error_for(node.admin_port, "10.1.2.3") == 0
        assert await error_for(node.admin_port, "10.1.2.4") == ErrorCode.cluster_authorization_failed
