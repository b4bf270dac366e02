"""Writes the reference pages that come from tables in the code: `python scripts/generate_docs.py`."""

from pathlib import Path

from kustos.authorizer.audit_fields import AUDIT_FIELDS, AUDIT_SCHEMA_VERSION

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


PAGES = {"audit-fields.md": audit_fields}


def main() -> None:
    """Write every generated page."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
