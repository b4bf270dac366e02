"""Our reading of `sasl.jaas.config` against Kafka's own, over texts made of everything that matters."""

import base64
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from kustos.auth import JaasError, LoginModulePolicy, single_jaas_entry
from kustos.server.settings.jaas import login_module_policy
from kustos.server.settings.properties import GivenSettings
from kustos.server.settings.table import BY_NAME
from testkit.kafka.compiled import java_program

WORDS = r"module required REQUISITE sufficient a b = = = ; ; 1 -1.5.2 . - $a x.y/z x-1. \ \n \101 \8 \477"
PIECES = (
    *WORDS.split(), '"', '"', "'", '"v"', "'w;='", '="x"', " ", "  ", "\t", "\n", "\r\n", "/", "//", "/*",
    "*/", "é", "€", "\x7f", "\x80", "\x85", "\xa0", "com.sun.security.auth.module.LdapLoginModule",
    '"m" required a="', "m required ", "a=b;",
)  # fmt: skip
SEED = 20_431
COUNT = 6000

LEAST = {
    "node.id": "7",
    "metadata.log.dir": "/var/lib/kustos",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "kustos.upstream.bootstrap.servers": "127.0.0.1:19092",
}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def asked_of_kafka(texts: Sequence[str], *options: str) -> list[str]:
    asked = subprocess.run(
        java_program(Path(__file__).with_name("JaasProbe.java"), options=options),
        input="\n".join(encoded(text) for text in texts) + "\n",
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return asked.stdout.splitlines()


def ours(text: str, policy: LoginModulePolicy | None = None) -> str:
    try:
        entry = single_jaas_entry(text, policy or LoginModulePolicy())
    except JaasError:
        return "error"
    ordered = sorted(entry.options.items(), key=lambda option: option[0].encode("utf-16-be"))
    options = [f"{encoded(key)}={encoded(value)}" for key, value in ordered]
    return " ".join([encoded(entry.login_module), entry.control_flag.value, *options])


MODULES = (
    "com.sun.security.auth.module.JndiLoginModule",
    "com.sun.security.auth.module.LdapLoginModule",
    "org.apache.kafka.common.security.plain.PlainLoginModule",
    "some.other.Module",
)
PROPERTIES: tuple[tuple[str | None, str | None], ...] = (
    # of the modules that are allowed, and of those that are not
    (None, None),
    (None, "some.other.Module , x"),
    (None, ""),
    ("some.other.Module", None),
    (" org.apache.kafka.common.security.plain.PlainLoginModule ,some.other.Module", "some.other.Module"),
    ("com.sun.security.auth.module.JndiLoginModule", None),
    ("", None),
)


@pytest.mark.behaviour("B335")
@pytest.mark.parametrize(("allowed", "disallowed"), PROPERTIES)
def test_the_same_login_modules_are_refused(allowed: str | None, disallowed: str | None) -> None:
    names = ("org.apache.kafka.allowed.login.modules", "org.apache.kafka.disallowed.login.modules")
    given = {name: text for name, text in zip(names, (allowed, disallowed), strict=True) if text is not None}
    texts = [f"{module} required;" for module in MODULES]
    theirs = asked_of_kafka(texts, *(f"-D{name}={text}" for name, text in given.items()))
    policy = login_module_policy(GivenSettings.read(BY_NAME, LEAST | given, {}))
    assert [ours(text, policy) for text in texts] == theirs


@pytest.mark.behaviour("B333")
def test_six_thousand_texts_are_read_alike() -> None:
    """An option whose name is no word has a null name in Java; that counts as an error on both sides."""
    chance = random.Random(SEED)
    entries = ("".join(chance.choices(PIECES, k=chance.randint(0, 9))) for _ in range(COUNT // 2))
    texts = [f"m required {entry};" for entry in entries]
    texts += ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(COUNT // 2)]
    theirs = asked_of_kafka(texts)
    pairs = ((text, ours(text), answer) for text, answer in zip(texts, theirs, strict=True))
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    assert differing[:5] == []
    assert 50 < sum(answer != "error" for answer in theirs) < COUNT
