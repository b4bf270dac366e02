"""A properties text means the same to us as to java.util.Properties."""

import random
import subprocess
from pathlib import Path

from kustos.client.errors import SettingsError
from kustos.client.properties import parse_properties
from testkit.kafka.compiled import java_program

PIECES = [
    *"\\=:#! \t\f\n\ru",
    "\r\n",
    "\\\n",
    "\\\r\n",
    "\\u00e9",
    "\\u12",
    "\\u0416",
    "\\u005c",
    "\\t",
    "\\n",
    "\\q",
    "\\\\",
    "key",
    "value",
    "é",
    "\x00",
    "\x0b",
    "\x85",
    "\u2028",
    "  ",
    "a.b=c",
    "# x",
]

EXAMPLES = [
    "a=b\n",
    "a : b\\\n   c\n",
    "! a\n#b\nc",
    "key\\ with\\=all\\:three = x\\u0041\\n",
    "a=1\na=2",
    "=no key",
    "a\\\n",
    "a\\",
    "   \\\n   # not a comment=1",
    "a=b \\\n\n c=d",
    'listener.name.x.plain.sasl.jaas.config=M required \\\n  user_a="b";\n',
]


def texts(count: int) -> list[str]:
    """Return texts that end with a proper line.

    Where the last line is nothing but a backslash, Java finds an empty key, which is of no use to anybody.
    """
    chooser = random.Random(20_261_121)
    made = ("".join(chooser.choices(PIECES, k=chooser.randrange(1, 14))) for _ in range(count))
    return [f"{text}\nlast=1\n" for text in (*EXAMPLES, *made)]


def ours(text: str) -> str:
    try:
        found = parse_properties(text)
    except SettingsError:
        return "malformed"
    pairs = sorted((_hex(key), _hex(value)) for key, value in found.items())
    return " ".join(["read", *(f"{key}={value}" for key, value in pairs)])


def _hex(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def test_a_text_reads_as_java_reads_it() -> None:
    given = texts(20_000)
    done = subprocess.run(
        java_program(Path(__file__).with_name("PropertiesReader.java")),
        input="".join(f"{_hex(text)}\n" for text in given),
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = done.stdout.splitlines()
    assert len(theirs) == len(given)
    differing = [text for text, line in zip(given, theirs, strict=True) if ours(text) != line]
    assert differing == []
