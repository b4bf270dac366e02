"""Our reading of `sasl.jaas.config` against Kafka's own, over texts made of everything that matters."""

import base64
import random
import subprocess
from pathlib import Path

from kustos.auth import JaasError, single_jaas_entry
from testkit.kafka import KAFKA

WORDS = r"module required REQUISITE sufficient a b = = = ; ; 1 -1.5.2 . - $a x.y/z x-1. \ \n \101 \8 \477"
PIECES = (
    *WORDS.split(), '"', '"', "'", '"v"', "'w;='", '="x"', " ", "  ", "\t", "\n", "\r\n", "/", "//", "/*",
    "*/", "é", "€", "\x7f", "\x80", "\x85", "\xa0", "com.sun.security.auth.module.LdapLoginModule",
    '"m" required a="', "m required ", "a=b;",
)  # fmt: skip
SEED = 20_431
COUNT = 6000


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def ours(text: str) -> str:
    try:
        entry = single_jaas_entry(text)
    except JaasError:
        return "error"
    ordered = sorted(entry.options.items(), key=lambda option: option[0].encode("utf-16-be"))
    options = [f"{encoded(key)}={encoded(value)}" for key, value in ordered]
    return " ".join([encoded(entry.login_module), entry.control_flag.value, *options])


def test_six_thousand_texts_are_read_alike() -> None:
    """An option whose name is no word has a null name in Java; that counts as an error on both sides."""
    chance = random.Random(SEED)
    entries = ("".join(chance.choices(PIECES, k=chance.randint(0, 9))) for _ in range(COUNT // 2))
    texts = [f"m required {entry};" for entry in entries]
    texts += ["".join(chance.choices(PIECES, k=chance.randint(1, 12))) for _ in range(COUNT // 2)]
    probe = Path(__file__).with_name("JaasProbe.java")
    asked = subprocess.run(
        ["java", "-cp", KAFKA.classpath, str(probe)],
        input="\n".join(encoded(text) for text in texts) + "\n",
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    theirs = asked.stdout.splitlines()
    pairs = ((text, ours(text), answer) for text, answer in zip(texts, theirs, strict=True))
    differing = [pair for pair in pairs if pair[1] != pair[2]]
    assert differing[:5] == []
    assert 50 < sum(answer != "error" for answer in theirs) < COUNT
