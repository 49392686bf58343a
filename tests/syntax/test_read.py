"""Whatever a path turns out to be, reading it is a finding and never an exception."""

from __future__ import annotations

import hashlib
import os
import socket
from pathlib import Path

import pytest

from frtspec.syntax.read import LARGEST, read_source

TEXT = "frt 1\r\nscheme s { }\n"


def said(path: Path | str) -> tuple[str, str]:
    source, found = read_source(str(path))
    assert source is None
    assert len(found) == 1
    return found[0].code, f"{found[0].message}; {found[0].help}"


def test_bytes_are_what_the_digest_is_of(tmp_path: Path) -> None:
    path = tmp_path / "a.frt"
    path.write_bytes(TEXT.encode())
    source, found = read_source(str(path))
    assert source is not None
    assert found == []
    assert source.text == TEXT
    assert source.digest == hashlib.sha256(TEXT.encode()).hexdigest()
    assert source.path == str(path)


def test_a_mark_is_skipped_and_counts_in_the_digest(tmp_path: Path) -> None:
    path = tmp_path / "a.frt"
    raw = b"\xef\xbb\xbf" + TEXT.encode()
    path.write_bytes(raw)
    source, _ = read_source(str(path))
    assert source is not None
    assert source.text == TEXT
    assert source.digest == hashlib.sha256(raw).hexdigest()


def test_an_empty_file_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.frt"
    path.write_bytes(b"")
    source, found = read_source(str(path))
    assert source is not None
    assert found == []


@pytest.mark.parametrize(
    "raw, code, words",
    [
        (TEXT.encode("utf-16"), "FRT0002", "byte order mark of UTF-16; save it as UTF-8"),
        (TEXT.encode("utf-16-be"), "FRT0003", "zero byte; save it as UTF-8; it looks like UTF-16"),
        (b"frt 1\n# caf\xe9\n", "FRT0002", "line 2 holds the byte 0xe9"),
        (b"frt 1\n\0", "FRT0003", "zero byte; remove it"),
        (b"#" * (LARGEST + 1), "FRT0001", f"more than {LARGEST}"),
    ],
)
def test_bytes_that_are_no_spec(tmp_path: Path, raw: bytes, code: str, words: str) -> None:
    path = tmp_path / "a.frt"
    path.write_bytes(raw)
    found = said(path)
    assert found[0] == code
    assert words in found[1]


def test_a_zero_byte_has_a_place(tmp_path: Path) -> None:
    path = tmp_path / "a.frt"
    path.write_bytes(b"frt 1\n\0")
    _, found = read_source(str(path))
    assert (found[0].span.start, found[0].span.end) == (6, 7)


def test_what_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.frt"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(tmp_path / "s.frt"))
        assert said(tmp_path / "s.frt")[1].startswith("can't be read: it is a socket")
    assert said(tmp_path)[1].startswith("can't be read: it is a folder")
    assert said(pipe)[1].startswith("can't be read: it is a pipe")
    assert said("/dev/null")[1].startswith("can't be read: it is a device")
    assert said(tmp_path / "none.frt")[1].startswith("can't be read: no such file")
    assert said("a\0b")[0] == "FRT0001"
    assert said("x" * 10_000)[0] == "FRT0001"


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_file_that_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.frt"
    path.write_text(TEXT)
    path.chmod(0)
    assert said(path)[1].startswith("can't be read: permission denied")
