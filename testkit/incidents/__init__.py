"""Months of another make: an organisation lives through them event by event, and things happen to it.

What is planted is described in the words of those who run clusters (a stolen credential, a retried right, a
night on call), and drawn from parameters of its own. Nothing here imports the detectors, shares a threshold
with them, or knows which kinds of findings there are: a test keeps it so.
"""

from testkit.incidents.frames import rollup_of, security_of
from testkit.incidents.ledger import Incident, Ledger
from testkit.incidents.story import Story, told

__all__ = ["Incident", "Ledger", "Story", "rollup_of", "security_of", "told"]
