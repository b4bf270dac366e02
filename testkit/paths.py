"""Where the checkout keeps its sources and its caches."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout's top folder."""

CACHE = ROOT / ".cache"
"""Everything that was downloaded or derived; safe to delete, ignored by git."""

MAVEN_PROJECTS = ROOT / "testkit" / "maven"
"""One Maven project a set of jars, versions pinned."""
