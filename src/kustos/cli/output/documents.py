"""Output for programs: formats, one document in JSON or YAML, and the one shape of errors."""

import json
import re
import sys
from enum import StrEnum
from typing import Any, Final

from kustos.cli.output.text import print_notice


class OutputFormat(StrEnum):
    """`-o/--output`, the same for every command that has it."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    CSV = "csv"
    SPREADSHEET = "spreadsheet"
    JSON = "json"
    YAML = "yaml"

    @property
    def is_document(self) -> bool:
        """Whether the whole answer is printed as one document."""
        return self in (OutputFormat.JSON, OutputFormat.YAML)

    @property
    def needs_rows(self) -> bool:
        """Whether only an answer with rows can be printed in this format."""
        return self in (OutputFormat.WIDE, OutputFormat.NAME, OutputFormat.CSV, OutputFormat.SPREADSHEET)


def print_document(document: Any, output: OutputFormat) -> None:
    """Print one document of plain values, keys in the given order, in ASCII; JSON is indented."""
    sys.stdout.write(document_text(document, output))


def document_text(document: Any, output: OutputFormat) -> str:
    """Return the text that `print_document` prints."""
    if output is OutputFormat.YAML:
        return _yaml(document)
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


_PLAIN_KEY: Final = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[a-z_]+")
"""Keys that need no quotes: words that YAML reads as nothing else."""


def _yaml(document: Any) -> str:
    """Return a document in a simple part of YAML that needs no library: texts stand in double quotes."""
    return "\n".join(_yaml_lines(document)) + "\n"


def _yaml_lines(value: Any) -> list[str]:
    lines: list[str] = []
    if isinstance(value, dict) and value:
        for key, item in value.items():
            name = str(key) if _PLAIN_KEY.fullmatch(str(key)) else _yaml_text(str(key))
            nested = _yaml_lines(item)
            if isinstance(item, dict | list | tuple) and item:
                lines += [f"{name}:", *(f"  {line}" for line in nested)]
            else:
                lines.append(f"{name}: {nested[0]}")
        return lines
    if isinstance(value, list | tuple) and value:
        for item in value:
            first, *rest = _yaml_lines(item)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        return lines
    return [_yaml_text(value) if isinstance(value, str) else _yaml_scalar(value)]


def _yaml_text(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    if not (quoted.isascii() and quoted.isprintable()):
        quoted = "".join(
            character if character.isascii() and character.isprintable() else f"\\U{ord(character):08x}"
            for character in quoted
        )
    return f'"{quoted}"'


def _yaml_scalar(value: Any) -> str:
    text = json.dumps(value)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # without a point YAML 1.1 reads it as a text
    return text


def print_error(code: str, message: str, output: OutputFormat) -> None:
    """Print the one shape of errors on standard error; its JSON is valid YAML too."""
    if output.is_document:
        sys.stderr.write(json.dumps({"error": {"code": code, "message": message}}) + "\n")
    else:
        print_notice("error", message)
