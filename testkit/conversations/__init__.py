"""Conversations: the same bytes to a real broker and to kustos, and what both answer.

`documents` reads the corpus, `speaker` turns its steps into bytes, `play` says them to one side, `answers`
makes what it hears comparable, `scene` starts both sides.
"""

from testkit.conversations.answers import Heard
from testkit.conversations.documents import CORPUS, Conversation, DocumentError, conversations
from testkit.conversations.play import Side, play
from testkit.conversations.scene import Scene, scene

__all__ = [
    "CORPUS",
    "Conversation",
    "DocumentError",
    "Heard",
    "Scene",
    "Side",
    "conversations",
    "play",
    "scene",
]
