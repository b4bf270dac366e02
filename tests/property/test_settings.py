"""Theorem: every properties file is either parsed or refused with a message."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kustos.client.errors import SettingsError
from kustos.server.settings.node_settings import settings_from
from kustos.server.settings.table import SETTINGS

LEAST = {
    "node.id": "7",
    "metadata.log.dir": "/var/lib/kustos",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
}
KEYS = st.sampled_from([setting.name for setting in SETTINGS]) | st.sampled_from(
    [
        "listener.name.sasl_plaintext.plain.sasl.jaas.config",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms",
        "listener.name.sasl_plaintext.kustos.broker.port.start",
        "listener.name.sasl_plaintext.kustos.broker.host.pattern",
        "plain.sasl.jaas.config",
        "listener.name..",
        "listener.name.x.kustos.",
    ]
)
PIECES = st.sampled_from(
    [
        *"${}:/,;=\"'*[]\0\n ",
        "env",
        "file",
        "A://",
        "127.0.0.1",
        "::1",
        ":9092",
        "PLAINTEXT",
        "SASL_PLAINTEXT",
        *("PLAIN", "GSSAPI", "json", "User:a", "true", "0", "1", "65535", "-", "\u0661", "required"),
        *("A://b:" + "9" * 5000, "b:" + "9" * 5000, "9" * 5000, "${file:\0}", "${file:\0:a}"),
    ]
)
VALUES = st.text(max_size=20) | st.lists(PIECES, max_size=8).map("".join)


@settings(max_examples=1000)
@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_settings_are_read_or_refused_by_name(changes: dict[str, str]) -> None:
    try:
        read = settings_from(LEAST | changes, {"A": "1"})
    except SettingsError:
        return
    assert read.listeners
    for listener in read.listeners:
        assert listener.bind.host
        for ports in listener.ports:
            assert 0 < ports.start < ports.stop <= 65536
