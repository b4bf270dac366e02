"""Hides Hypothesis: on the path of a node of the tests, so that it runs as where no test is installed.

kio teaches its types to Hypothesis wherever it finds it, which takes a fourth of a node's start.
"""

raise ModuleNotFoundError("Hypothesis is for tests, not for a node")
