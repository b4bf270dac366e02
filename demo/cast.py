"""Who and what the demo is about."""

from typing import Final

ADMIN: Final = "admin"
USERS: Final = {
    "alice": "sells: writes the topic orders, that very name",
    "bob": "ships: read every topic that begins with orders, until that was taken away",
    "carol": "analyses: reads every topic, but payroll is denied to her",
    "mallory": "has a password and not one ACL",
}
"""The users that `kustos users add` makes; the super user `admin` is there from the start."""

NOBODY: Final = "nobody"
"""A name that no user has."""

ORDERS: Final = "orders"
ORDERS_EU: Final = "orders-eu"
PAYROLL: Final = "payroll"
TOPICS: Final = (ORDERS, ORDERS_EU, PAYROLL)

JAVA_RECORDS: Final = ("order 1: tea", "order 2: bread", "order 3: salt")
"""What alice types into Kafka's console producer."""

PYTHON_RECORDS: Final = ("order 4: milk", "order 5: rice")
ORDER_COUNT: Final = len(JAVA_RECORDS) + len(PYTHON_RECORDS)
EU_RECORDS: Final = ("eu order 1: wine", "eu order 2: cheese")
PAYROLL_RECORDS: Final = ("alice 4100", "bob 3900")
LATE_RECORDS: Final = ("eu order 3: olives",)
"""What bob's consumer gets while it still may."""
