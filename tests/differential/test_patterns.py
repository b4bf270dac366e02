"""The page on rules lists each form of a pattern that Java accepts and kustos refuses."""

import itertools
import re
import subprocess
from pathlib import Path

from kustos.auth import MappingRuleError
from kustos.auth.mapping.java_patterns import translate
from testkit.kafka.compiled import java_program
from testkit.paths import ROOT

ROWS = re.findall(r"(?m)^\| (.+?) \| (`.+?`) \| (.*?) ?\|$", (ROOT / "docs/how-to/map-names.md").read_text())
REFUSED = [example for _, examples, _ in ROWS for example in re.findall(r"`(.+?)`", examples)]
WRITTEN_INSTEAD = [example for *_, instead in ROWS for example in re.findall(r"`(.+?)`", instead)]

LETTERS = "aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ"
PIECES = (
    *(f"\\{letter}" for letter in LETTERS), *(f"(?{letter})a" for letter in LETTERS),
    *(f"\\p{{{name}}}" for name in (
        "L", "Lu", "Sc", "IsLatin", "IsAlphabetic", "InGreek", "javaLowerCase", "Lower", "Upper", "Alpha",
        "Digit", "Alnum", "Punct", "Graph", "Print", "Blank", "Cntrl", "XDigit", "Space", "ASCII", "None",
    )),
    *"ab.^$|()[]{}*+?-&#, é", *"0179", "(?:a)", "(?=a)", "(?<!a)", "(?>a)", "(?<n>a)", r"\k<n>", r"\1",
    r"\012", r"\x41", r"\x{41}", r"\u0041", r"\uD800", r"\N{SPACE}", r"\b{g}", r"\cA", r"\Qa\E", "[a-c]",
    "[^a]", "[a&&b]", "[[a]b]", "[]a]", "[a-c-e]", r"[\d-z]", r"[\w.-]", r"[\Qa\E]", "a*+", "a{2}",
    "a{2,1}", "a{2}{3}", "(a*)*", "a{,3}", "a**", "(?i)é", r"(?i)\p{Lower}", "(?s-i:a)",
)  # fmt: skip


def is_accepted(pattern: str) -> bool:
    try:
        translate(pattern)
    except MappingRuleError:
        return False
    return True


def accepted_by_java(patterns: list[str]) -> list[bool]:
    done = subprocess.run(
        java_program(Path(__file__).with_name("PatternCompiler.java")),
        input="".join(f"{pattern.encode('utf-16-be').hex()}\n" for pattern in patterns),
        capture_output=True,
        text=True,
        check=True,
    )
    return [line == "accepted" for line in done.stdout.splitlines()]


def test_what_the_page_lists_is_refused_here_and_accepted_by_java() -> None:
    assert len(REFUSED) > 50
    assert [pattern for pattern in REFUSED if is_accepted(pattern)] == []
    assert [pattern for pattern in WRITTEN_INSTEAD if not is_accepted(pattern)] == []
    accepted = accepted_by_java([*REFUSED, *WRITTEN_INSTEAD])
    assert [pattern for pattern, known in zip(REFUSED, accepted, strict=False) if not known] == []
    assert all(accepted)


def test_java_accepts_what_is_accepted_here() -> None:
    patterns = [*PIECES, *map("".join, itertools.product(PIECES, repeat=2))]
    differing = [
        pattern
        for pattern, known in zip(patterns, accepted_by_java(patterns), strict=True)
        if is_accepted(pattern) and not known
    ]
    assert differing == []
