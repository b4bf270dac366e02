"""Writes the reference pages that come from tables in the code: `python scripts/generate_docs.py`."""

from pathlib import Path

from kustos.authorizer.audit_fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION
from kustos.server.setting_table import SETTINGS

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"


def audit_fields() -> str:
    """Return the page of audit fields."""
    rows = [
        f"| `{field.name}` | {field.kind} | {'yes' if field.nullable else 'no'} | {field.meaning} |"
        for field in AUDIT_FIELDS
    ]
    intro = f"One JSON object a line, schema version {AUDIT_SCHEMA_VERSION}. A dot in a name nests."
    return "\n".join(
        [
            "# Audit fields",
            "",
            intro,
            "",
            "| field | type | may be null | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def configuration() -> str:
    """Return the page of configuration keys."""
    lines = ["# Configuration", "", "Keys of the properties file that `kustos serve` reads."]
    for section in dict.fromkeys(setting.section for setting in SETTINGS):
        lines += ["", f"## {section}", "", "| key | takes | default | meaning |", "|---|---|---|---|"]
        for setting in SETTINGS:
            if setting.section == section:
                default = "required" if setting.required else _shown(setting.default)
                lines.append(f"| `{setting.name}` | {setting.kind.takes} | {default} | {setting.doc} |")
    return "\n".join([*lines, ""])


def _shown(default: object) -> str:
    if default is None or default in ("", ()):
        return "none"
    if isinstance(default, tuple):
        return f"`{','.join(map(str, default))}`"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


PAGES = {"audit-fields.md": audit_fields, "configuration.md": configuration}


def main() -> None:
    """Write every generated page."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
