"""Names of principals mapped by Kafka's own classes and by ours, over drawn rules and names.

python -m testkit.mapping_probe     # records Kafka's answers for runs without Java
"""

import base64
import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kustos.auth import MappingRuleError, NoMatchingRuleError
from kustos.auth.mapping import kerberos_shortener, rfc2253_of_der, ssl_principal_mapper
from testkit.kafka.compiled import java_program

GOLDEN = Path(__file__).with_name("mapping.golden.json")
GOLDEN_SEED, GOLDEN_COUNT = 371, 200
PROBE_TIMEOUT_S = 300
RULES, NONE, ERROR = "!rules", "!none", "!error"
REPLACED = "\N{REPLACEMENT CHARACTER}"

Question = list[str]
"""The kind, and its texts; names in DER are in Latin-1."""

SSL_PARTS = (
    "CN=", "cn=", "alice", "Bob", ",OU=", "Service Users", ",O=", "a", "b", "ab", "B", ",", "+", "=", ".*",
    ".*?", "(.*)", "(.*?)", "[^,]*", "([^,]+)", r"(\w+)", r"\w", r"\d{2}", r"\s", r"\S+", r"\.", r"\,",
    r"\/", "[a-c]", "[^a-b]", "[A-Za-z0-9._-]+", "(a|b)", "(a|ab)", "(a)?", "(?:a|B)+", "(?i)", "(?i:AL)",
    "^", "$", "a{2}", "a{1,}", "b{0,2}?", "b*", "b*?", r"\QCN=\E", r"\x41", r"\u0061", "\\p{Alpha}+",
    r"\P{Digit}", "é", "(?<n>a.)", "[ab&]", r"[\w-]", r"[^\s,]*", "|", r"\D", ".", "a?", "(b*)",
)  # fmt: skip
ODD_PARTS = (
    "(", ")", "*", "{", "}", "[", "]", "a++", r"\b", r"\1", "(?=a)", "(?<!b)", "(?>a)", "(a*)*", "[a&&b]",
    "[[a]b]", "^*", r"\8", r"\y", "{1}", "a{3,1}", "(|a)+", "a**", r"\p{L}", r"\Q", "[]a]", "[a-", "(?x)",
    r"\G", "[z-a]",
)  # fmt: skip
REPLACEMENTS = (
    "$1", "$2", "$1@x", "$10", "$12$1", "x", "", "user", r"a\/b", "a,b", "$1,$2", r"\$1", r"\\", "${n}",
    "$0", "é", "$3$4", "$", r"\.", "$1-$0", "B ", " ß",
)  # fmt: skip
NAME_PARTS = (
    "CN=", "alice", "Bob", ",OU=", "Service Users", ",O=", "a", "b", "A", "B", "ab", ",", "=", "42", "é",
    " ", ".", "aab", "-", "_", "ß",
)  # fmt: skip
WHOLE_RULES = ("DEFAULT", "DEFAULT", "default", "DEFAULTx", "RULE:a", "RULE:a/b", "", "RULE:a/b/l", "x")
CASES = ("", "", "L", "U")
KERBEROS_FORMATS = (
    "$1", "$2", "$0", "$1@$0", "$1/$2@$0", "$1-$2", "App.$1", "x", "$", "$3", "$12", "$$1", "",
)  # fmt: skip
KERBEROS_MATCHES = ("", "(.*)", "(App\\..*)", "(.*@EXAMPLE.COM)", "([a-z]*)", "(a.*b)", "(x*)", "(a++)")
KERBEROS_CHANGES = (
    "", "s/a/b/", "s/a/b/g", "s/@.*//", "s/.*/x/", "s/x*/-/g", "s/App\\.(.*)/$1/g", "s/a/@/", "s/(a)/$2/",
    "s/b*/é/g",
)  # fmt: skip
KERBEROS_CASES = ("", "", "/L", "/U", "L", "U", "/", "/x", "/g/L")
KERBEROS_NAMES = (
    "alice@EXAMPLE.COM", "kafka/host.example.com@EXAMPLE.COM", "App.service@EXAMPLE.COM", "aab@OTHER", "bob",
    "a/b", "a/b@C/d", "a@b@c", "@R", "/@R", "a/@EXAMPLE.COM", "a/b/c@EXAMPLE.COM", "aab/xx@OTHER",
    "App.x/y@OTHER", "", "@", "Ünal@EXAMPLE.COM", "xaxb/b@EXAMPLE.COM",
)  # fmt: skip
REALMS = ("EXAMPLE.COM", "OTHER", "")

OIDS = (
    "550403", "550406", "550407", "550408", "550409", "55040a", "55040b", "550404", "550405", "55042a",
    "0992268993f22c640101", "0992268993f22c640119", "2a864886f70d010901", "2b06010401823c0201", "8837",
)  # fmt: skip
TAGS = (0x0C, 0x0C, 0x0C, 0x13, 0x13, 0x14, 0x16, 0x1B, 0x1E, 0x1C, 0x04, 0x02)
VALUE_PARTS = (
    "a", "Z", "é", "€", "😀", ",", "=", "+", "<", ">", "#", ";", '"', "\\", " ", "  ", "\r", "\0", "/", "'",
    "\t", "\x7f", "ex.com", "9", "\x01", "Ⅷ",
)  # fmt: skip


def rule(chance: random.Random, parts: Sequence[str]) -> str:
    drawn = chance.random()
    if drawn < 0.12:
        return chance.choice(
            ("DEFAULT", "DEFAULT", "default", "DEFAULTx", "RULE:a", "RULE:a/b", "", "RULE:a/b/l", "x")
        )
    pattern = "".join(chance.choices(parts, k=chance.randint(1, 5)))
    tail = "" if drawn < 0.9 else chance.choice(("x", "L", "/", " L"))
    replacement = "".join(chance.choices(REPLACEMENTS, k=chance.choice((1, 1, 2))))
    return f"RULE:{pattern}/{replacement}/{chance.choice(CASES)}{tail}"


def ssl_questions(chance: random.Random, count: int) -> Iterator[Question]:
    for number in range(count):
        parts = (*SSL_PARTS, *ODD_PARTS) if number % 5 == 0 else SSL_PARTS
        blanks = chance.choice((",", ", ", " , ", ",,"))
        rules = blanks.join(rule(chance, parts) for _ in range(chance.choice((1, 1, 1, 2, 3))))
        names = ["".join(chance.choices(NAME_PARTS, k=chance.randint(0, 6))) for _ in range(8)]
        yield ["ssl", rules, "a", "ab", "CN=alice,OU=Service Users,O=B", *names]


def kerberos_questions(chance: random.Random, count: int) -> Iterator[Question]:
    for _ in range(count):
        rules = []
        for _ in range(chance.randint(0, 3)):
            number = chance.choice(("1", "1", "2", "2", "3", "0", ""))
            pieces = (KERBEROS_FORMATS, KERBEROS_MATCHES, KERBEROS_CHANGES, KERBEROS_CASES)
            form, match, change, case = (chance.choice(each) for each in pieces)
            drawn = f"RULE:[{number}:{form}]{match}{change}{case}"
            rules.append(chance.choice((drawn, drawn, drawn, drawn, "DEFAULT", " DEFAULT", "default")))
        names = chance.sample(KERBEROS_NAMES, 8)
        yield ["kerberos", chance.choice(REALMS), str(len(rules)), *rules, *names]


def _tlv(tag: int, body: bytes) -> bytes:
    size = len(body)
    length = bytes([size]) if size < 0x80 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + body


def _attribute(chance: random.Random) -> bytes:
    tag = chance.choice(TAGS)
    text = "".join(chance.choices(VALUE_PARTS, k=chance.choice((0, 1, 1, 2, 3, 4))))
    value = text.encode("utf-16-be" if tag == 0x1E else "utf-8")
    if tag == 0x02:
        value = value or b"\1"
    return _tlv(0x30, _tlv(0x06, bytes.fromhex(chance.choice(OIDS))) + _tlv(tag, value))


def x500_questions(chance: random.Random, count: int) -> Iterator[Question]:
    for _ in range(count):
        names = []
        for _ in range(4):
            parts = [
                b"".join(sorted(_attribute(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))))
                for _ in range(chance.randint(0, 4))
            ]
            names.append(_tlv(0x30, b"".join(_tlv(0x31, part) for part in parts)).decode("latin-1"))
        yield ["x500", *names]


def draw(seed: int, count: int) -> list[Question]:
    """Return questions of each kind, `count` of them for certificates' rules."""
    chance = random.Random(seed)
    return [
        *ssl_questions(chance, count),
        *kerberos_questions(chance, count // 2),
        *x500_questions(chance, count // 2),
    ]


def probe_word(text: str, encoding: str = "utf-8") -> str:
    return "=" + base64.b64encode(text.encode(encoding)).decode()


def _line(question: Question) -> str:
    kind, *texts = question
    if kind == "kerberos":
        return " ".join([kind, probe_word(texts[0]), texts[1], *map(probe_word, texts[2:])])
    return " ".join([kind, *(probe_word(text, "latin-1" if kind == "x500" else "utf-8") for text in texts)])


def _readable(word: str) -> str:
    return base64.b64decode(word[1:]).decode() if word.startswith("=") else word


def run_probe(lines: Sequence[str]) -> list[list[str]]:
    """Return what the probe answers to each line."""
    run = subprocess.run(
        java_program(Path(__file__).with_name("MappingProbe.java")),
        input="".join(f"{line}\n" for line in lines),
        capture_output=True, text=True, encoding="utf-8", timeout=PROBE_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    return [[_readable(word) for word in line.split(" ")] for line in run.stdout.splitlines()]


def kafkas_answers(questions: Sequence[Question]) -> list[list[str]]:
    """Return Kafka's answers: one for each name, or that the rules are refused."""
    return run_probe([_line(question) for question in questions])


def _each(mapping: Callable[[str], str], names: Sequence[str]) -> list[str]:
    found = []
    for name in names:
        try:
            found.append(mapping(name))
        except NoMatchingRuleError:
            found.append(NONE)
    return found


def our_answer(question: Question) -> list[str]:
    """Return ours, in the same form."""
    kind, *texts = question
    try:
        if kind == "ssl":
            return _each(ssl_principal_mapper(texts[0]), texts[1:])
        if kind == "kerberos":
            end = 2 + int(texts[1])
            return _each(kerberos_shortener(texts[2:end], texts[0]), texts[end:])
    except MappingRuleError:
        return [RULES]
    return _each(lambda name: rfc2253_of_der(name.encode("latin-1")), texts)


def differences(questions: Sequence[Question], theirs: Sequence[list[str]]) -> list[tuple[object, ...]]:
    """Return where we give a user that Kafka does not, or another one, or none to whom Kafka gives one.

    Rules that we refuse at the start are no difference: Kafka may take them. Nor are names that Java reads
    with a replacement character in place of what is not UTF-8.
    """
    found: list[tuple[object, ...]] = []
    for question, answers in zip(questions, theirs, strict=True):
        ours = our_answer(question)
        if ours == [RULES]:
            continue
        if answers == [RULES] or len(ours) != len(answers):
            found.append((question, ours, answers))
            continue
        names = question[-len(answers) :]
        for name, our_name, their_name in zip(names, ours, answers, strict=True):
            both_closed = our_name == NONE and (their_name in {NONE, ERROR} or REPLACED in their_name)
            if our_name != their_name and not both_closed:
                found.append((question[0], question[1 : -len(answers)], name, our_name, their_name))
    return found


def main() -> int:
    questions = draw(GOLDEN_SEED, GOLDEN_COUNT)
    rows = [
        [question, answers] for question, answers in zip(questions, kafkas_answers(questions), strict=True)
    ]
    GOLDEN.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
