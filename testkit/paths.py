"""Paths of the checkout's sources and caches."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout's top folder."""

CACHE = ROOT / ".cache"
"""Everything downloaded or derived; safe to delete, ignored by git."""

MAVEN_PROJECTS = ROOT / "testkit" / "maven"
"""One Maven project per set of jars, with pinned versions."""
