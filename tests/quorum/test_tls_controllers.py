"""Cluster mode over TLS: a node follows controllers, and changes ACLs there, by its certificate."""

from pathlib import Path

import pytest

from kustos.acl import AclPermissionType
from kustos.client import ClientError, ClientSettings, connect, parse_address
from testkit.certificates import Authority
from testkit.kafka import PLAINTEXT
from testkit.quorum.controllers import Quorum
from testkit.quorum.nodes import DENIED, UNKNOWN_TOPIC, create_acls, kraft_node, logged_in, topic_error
from testkit.quorum.nodes import ann as ann_of

TOPIC = "tls-orders"


def stores_of(directory: Path, authority: Authority, name: str) -> dict[str, str]:
    """Return the settings of the stores of this holder."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue(name).write(directory / f"{name}.pem")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.write(directory / f"trusted-by-{name}.pem")),
    }


async def test_a_node_follows_and_changes_a_quorum_over_tls(tmp_path: Path) -> None:
    authority = Authority()
    protocols = {PLAINTEXT.name: "PLAINTEXT", "INTERNAL": "PLAINTEXT", "CONTROLLER": "SSL"}
    properties = {
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
        "listener.name.controller.ssl.client.auth": "required",
        "super.users": "User:admin;User:ANONYMOUS;User:CN=kafka;User:CN=kustos",
        **stores_of(tmp_path, authority, "kafka"),
    }
    with Quorum(tmp_path / "quorum", count=1, protocol="PLAINTEXT", properties=properties) as quorum:
        own = {"security.protocol": "SSL", **stores_of(tmp_path, authority, "kustos")}
        at = quorum.controllers[0].controller_address
        (await connect(parse_address(at), ClientSettings.from_properties(at, own))).close()
        stranger = stores_of(tmp_path, Authority("stranger"), "mallory")
        trust = {key: own[key] for key in own if key.startswith(("ssl.truststore", "security"))}
        for wrong, why in (
            (own | {key: stranger[key] for key in stranger if "truststore" in key}, "certificate"),
            (trust | {key: stranger[key] for key in stranger if "keystore" in key}, "."),
            (trust, "."),
            ({"security.protocol": "PLAINTEXT"}, "."),
        ):
            with pytest.raises(ClientError, match=why):
                (await connect(parse_address(at), ClientSettings.from_properties(at, wrong))).close()
        keys = {f"kustos.quorum.{key}": value for key, value in own.items()}
        with kraft_node(tmp_path / "kustos", quorum, keys) as node:
            ann = await logged_in(node, "ann")
            assert await topic_error(ann, TOPIC) == DENIED
            admin = await logged_in(node, "admin")
            answer = await create_acls(admin, ann_of(TOPIC, AclPermissionType.ALLOW))
            assert [result.error_code for result in answer.results] == [0]
            # acknowledged is in force
            assert await topic_error(ann, TOPIC) == UNKNOWN_TOPIC
