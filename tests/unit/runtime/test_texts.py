"""Text files: read whole and as UTF-8, or refused in one sentence that says what to do."""

import errno
import os
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kustos.runtime import TextFileError, read_text_file, read_text_stream, reason_of, text_of_bytes, words_of


@given(st.text(max_size=20).filter(lambda text: not text.startswith("\ufeff")), st.booleans())
def test_a_text_comes_back_without_its_mark(text: str, is_marked: bool) -> None:
    data = text.encode("utf-8-sig" if is_marked else "utf-8")
    assert read_text_stream(BytesIO(data), len(data), "x") == text_of_bytes(data, "x") == text
    if data:
        with pytest.raises(TextFileError, match=f"larger than {len(data) - 1} bytes"):
            read_text_stream(BytesIO(data), len(data) - 1, "x")


def test_what_is_no_utf_8_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"one\ntwo\nm\xfcller\n")
    with pytest.raises(TextFileError, match=rf"^{path}, line 3: this is not text in UTF-8$"):
        read_text_file(path, 100)


def test_a_file_that_is_not_there_is_told_by_its_path_and_kind(tmp_path: Path) -> None:
    with pytest.raises(TextFileError, match=rf"^cannot read the ACLs `{tmp_path}/none`: no such file"):
        read_text_file(tmp_path / "none", 100, "ACLs")
    with pytest.raises(TextFileError, match=rf"^cannot read the file `{tmp_path}`: is a directory$"):
        read_text_file(tmp_path, 100)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), "permission denied, check its permissions"),
        (OSError(errno.EPERM, os.strerror(errno.EPERM)), "operation not permitted, check its permissions"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "no space left on device"),
        (OSError(errno.ENOENT, "Failed to open local file 'x'"), "no such file or directory"),
        (OSError("File on fire"), "file on fire"),
        (OSError(), "the system gives no reason"),
    ],
)
def test_the_reason_of_an_error_is_in_lower_case_and_says_what_to_do(error: OSError, reason: str) -> None:
    assert reason_of(error) == reason


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("it is not a number"), "it is not a number"),
        (OSError("`meta` is in use"), "`meta` is in use"),
        (
            PermissionError(errno.EACCES, "Permission denied", "a/b"),
            "`a/b`: permission denied, check its permissions",
        ),
        (OSError(errno.EADDRINUSE, "cannot bind `127.0.0.1:9092`"), "cannot bind `127.0.0.1:9092`"),
        (OSError(errno.EIO, None), "input/output error"),
    ],
)
def test_the_words_of_an_error_have_no_numbers(error: Exception, words: str) -> None:
    assert words_of(error) == words
