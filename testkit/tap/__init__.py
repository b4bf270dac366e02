"""Records the frames that pass a connection, reads them with kio alone, and decides about them again."""

from testkit.tap.proxy import Exchange, Tap

__all__ = ["Exchange", "Tap"]
