"""A file of separated duties, and its rules."""

from kustos.analysis.duties import parse_duties

FILE = """
version: 1
duties:
  - id: four-eyes
    who_can: WRITE topics under pay.
    must_not: READ or ALTER topic orders
    but: User:carol
    reason: payers must not approve payments
  - who_can: READ every topic
    must_not: DESCRIBE groups under o
    super_users: true
"""
DUTIES = parse_duties(FILE)
