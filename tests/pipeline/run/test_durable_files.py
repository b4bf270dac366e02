"""What a command has reported as done is on the disk: the file, and its name."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kustos.pipeline.files import publish
from kustos.pipeline.report.job import _replace
from kustos.signoff.document import write_review
from kustos.signoff.review_file import change_review_file
from testkit.review_documents import document


def publish_page(out: Path) -> None:
    staging = out.parent / "staging"
    staging.mkdir()
    (staging / out.name).write_text("page")
    publish(staging, out.parent, (), (out.name,))


def write_decision(out: Path) -> None:
    out.write_text(write_review(document()))
    change_review_file(out, lambda contents: contents)


WRITERS: dict[str, Callable[[Path], None]] = {
    "a review": write_decision,
    "a page of tables": lambda out: _replace(out, "page"),
    "a page of files": publish_page,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_file_is_synced_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], None]
) -> None:
    out, steps = tmp_path / "out.json", list[str]()
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        steps.append("sync the name" if target == tmp_path else "sync the file")
        fsync(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        steps.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    write(out)
    assert out.stat().st_size
    assert steps == ["sync the file", "rename", "sync the name"]
