"""Whether a leader-epoch-checkpoint agrees with the log beside it.

It lists epochs with their first offsets. Leaders use it to tell followers where their logs diverge (KIP-595),
and a starting kustos to detect that the log lost its end. A missing epoch is not damage: the file is written
after the epoch began.
"""

from collections.abc import Sequence

Epoch = tuple[int, int]
"""An epoch and its first offset."""


def contradiction(listed: Sequence[Epoch], seen: Sequence[Epoch], end_offset: int) -> str | None:
    """Return what in a checkpoint contradicts a log that ends before `end_offset`, None if nothing does.

    `seen` are the epochs of the log in order, each with the offset of its first batch there. Epochs before
    the log's start were deleted and are not compared. The first epoch of the checkpoint may be listed later
    than it began: where the log began when the file was written.
    """
    before: Epoch = (-1, -1)
    for number, (epoch, offset) in enumerate(listed):
        if epoch <= before[0] or offset <= before[1]:
            return f"epoch {epoch} from offset {offset} cannot follow epoch {before[0]} from {before[1]}"
        before = (epoch, offset)
        if offset >= end_offset:
            return f"epoch {epoch} is to begin at offset {offset}, but the log ends at {end_offset - 1}"
        begun = [each for each in seen if each[1] <= offset]
        if begun and (begun[-1][0] != epoch or (number > 0 and begun[-1] != (epoch, offset))):
            return f"epoch {epoch} is to begin at offset {offset}, where epoch {begun[-1][0]} is under way"
        if not begun and seen and epoch > seen[0][0]:
            return f"epoch {epoch} is to begin before the log does, in epoch {seen[0][0]}"
    return None
