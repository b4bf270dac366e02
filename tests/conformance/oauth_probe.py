"""Kafka's own reading of OAUTHBEARER messages and tokens, through `OAuthProbe.java`."""

import base64
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from testkit.kafka.compiled import java_program

TIMEOUT_S = 120


def encoded(data: str | bytes) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


def kafkas(
    kind: str, items: Iterable[str | bytes], options: Sequence[str] = (), allowed_url: str = ""
) -> list[str]:
    """Return Kafka's answer to each item; `options` are `key=value`."""
    probe = Path(__file__).with_name("OAuthProbe.java")
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={allowed_url}"
    asked = subprocess.run(
        java_program(probe, kind, *options, options=[allowed, "-Dlog4j2.level=OFF"]),
        input="".join(f"{encoded(item)}\n" for item in items),
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    return asked.stdout.splitlines()
