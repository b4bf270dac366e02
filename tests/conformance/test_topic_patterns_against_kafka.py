"""Regular expressions of topics match in kustos (RE2) what they match in Kafka's brokers (RE2/J)."""

import base64
import subprocess
from random import Random

import pytest

from kustos.protocol.quoted_patterns import shown_upstream
from kustos.protocol.topic_patterns import TopicPattern, TopicPatternError
from testkit.kafka.compiled import java_program
from testkit.paths import ROOT

PROBE = ROOT / "testkit" / "parsing" / "TopicPatternProbe.java"
DRAWN = 20_000
PARTS = (
    "a", "b", "o", "orders", "-", ".", "_", "1", "A", "Z", ".*", ".+", ".?", "(", ")", "|", "[a-z]", "[^a]",
    "[a-", "]", "[]a]", "[^]a]", "*", "+", "?", "{2}", "{1,}", "{,2}", "{0,3}?", "*?", "**", "^", "$", r"\A",
    r"\z", r"\Z", r"\b", r"\B", r"\d", r"\w", r"\s", r"\D", r"\.", r"\-", r"\/", r"\_", r"\Q", r"\E", r"\pL",
    r"\p{Lu}", r"\PN", r"\p{Greek}", "[[:alpha:]]", "[[:word:]", "[:digit:]", "[[:nope:]]", r"\x41",
    r"\x{61}", r"\141", r"\1", r"\0", r"\C", "(?i)", "(?i:", "(?-s:", "(?s).", "(?U)", "(?m)^", "(?:",
    "(?P<n>", "(?<n>", "(?=", "(?!", "(?>", "(?#", "/", "é", "\u017f", "\n", "\t", r"\n", "#", " ",
    "&&", r"\c", r"\a", r"\v", r"\h", r"\R", r"\X", "{", "}", "{a}", "{1001}", "{2,1}",
)  # fmt: skip
NAMES = (
    "", "a", "b", "A", "ab", "ba", "aa", "orders", "orders-a", "Orders_1", "o.1", "a-b", "Z", "_", "1", "-",
    "s", "k", "__consumer_offsets",
)  # fmt: skip


ENDLESS = ("(?i)[a-\u212a]", r"(?i)[a-\x{212a}]", r"(?i)[a-\x{2000}]")
"""On these RE2/J 1.8 never ends (google/re2j#168); one heartbeat would hold a thread of a broker for ever."""


FOLDED = {
    "A(?i)|A[]a]": ["A", "aa"],
    "A|(?i:A)[a]": ["A", "aa"],
    "(?i:A)x|A": ["A"],
    "(?i:[A])x|[A]": ["A"],
}
"""Where two alternatives begin with the same letter, and only one of them regards its case, RE2/J 1.8 takes
the first one's letter for both (google/re2j#211)."""


def drawn(seed: int) -> list[str]:
    random = Random(seed)
    return ["".join(random.choices(PARTS, k=random.randint(1, 6))) for _ in range(DRAWN)]


def word(text: str) -> str:
    return "=" + base64.b64encode(text.encode()).decode()


def theirs(expressions: list[str], names: tuple[str, ...] = NAMES) -> list[str]:
    """Return what brokers say of each expression: `!` for none, else a digit for each name."""
    lines = "".join(" ".join(map(word, (expression, *names))) + "\n" for expression in expressions)
    done = subprocess.run(
        java_program(PROBE), input=lines, capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.splitlines()


def each_for_itself(expression: str) -> str:
    """Return an expression that leaves case alone with alternatives that begin with nothing.

    RE2/J takes none of them for another then.
    """
    return expression.replace("|", "|(?:)") if "(?i" in expression else expression


def ours(expression: str) -> str:
    try:
        pattern = TopicPattern.compile(expression)
    except TopicPatternError:
        return "!"
    return "".join("01"[pattern.matches(name)] for name in NAMES)


def matched(said: str) -> list[str]:
    return [name for name, digit in zip(NAMES, said, strict=True) if digit == "1"]


def test_both_match_the_same_names(seed: int) -> None:
    expressions = drawn(seed)
    said = list(zip(expressions, map(ours, expressions), theirs(expressions), strict=True))
    # what one of them refuses is an error for the client, whoever says so
    both = [each for each in said if "!" not in each[1:]]
    assert len(both) > DRAWN / 10
    differing = [each[:2] for each in both if each[1] != each[2]]
    again = theirs([each_for_itself(expression) for expression, _ in differing])
    found = [(*each, other) for each, other in zip(differing, again, strict=True) if each[1] != other]
    assert not found, f"{len(found)}: {found[:10]}"


def test_an_alternative_regards_case_as_it_is_written() -> None:
    mine = list(map(ours, FOLDED))
    assert list(map(matched, mine)) == list(FOLDED.values())
    assert theirs(list(map(each_for_itself, FOLDED))) == mine
    assert not set(zip(FOLDED, mine, strict=True)) & set(zip(FOLDED, theirs(list(FOLDED)), strict=True))


@pytest.mark.parametrize("expression", ENDLESS)
def test_expressions_on_which_brokers_hang_are_ours_to_match(expression: str) -> None:
    assert matched(ours(expression)) == [
        name for name in NAMES if len(name) == 1 and name.lower() in "abzosk"
    ]


def test_expressions_in_use_are_taken() -> None:
    used = [
        "orders-.*",
        "(eu|us)[.]orders",
        r"\w+-v\d{1,3}",
        "(?i)ORDERS.*",
        "^orders$",
        r"orders\..+",
        ".*",
    ]
    found = [ours(expression) for expression in used]
    assert "!" not in found
    assert found == theirs(used)


def test_upstream_never_finds_a_topic_by_what_it_is_told(seed: int) -> None:
    told = []
    for expression in (*ENDLESS, *drawn(seed + 1)):
        try:
            told.append(shown_upstream(TopicPattern.compile(expression).text, ["orders", "a.b"]))
        except TopicPatternError:
            continue
    assert len(told) > DRAWN / 10
    said = theirs(told)
    found = [each for each in zip(told, said, strict=True) if set(each[1]) != {"0"}]
    assert not found, found[:10]
