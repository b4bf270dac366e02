"""Which versions of each API the stories compare with Kafka, by `compared.csv`; a test keeps it current."""

import csv
from pathlib import Path
from typing import Final

COMPARED: Final = Path(__file__).with_suffix(".csv")
CLIENTS, ADMINS = "clients", "admins"
"""The listeners that the rows are of."""


def versions_of(listener: str) -> dict[int, str]:
    """Return the versions by API key, as ranges in words."""
    with COMPARED.open(encoding="utf-8", newline="") as file:
        return {
            int(row["key"]): row["versions"] for row in csv.DictReader(file) if row["listener"] == listener
        }
