"""Files shared by processes: whole or not there, one writer at a time, nothing thrown away."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest

from frtspec.runtime import store
from frtspec.runtime.errors import Refusal

fork = multiprocessing.get_context("fork")


def started(work, *args):
    process = fork.Process(target=work, args=args)
    process.start()
    return process


def write(path, text):
    with store.locked(path):
        store.sweep(path)
        with store.replacing(path) as fresh:
            fresh.write_text(text)


def _write_often(path, letter):
    for _ in range(30):
        write(path, letter * 200_000)


def test_a_reader_sees_one_writers_file_whole(tmp_path):
    path = tmp_path / "file"
    write(path, "a" * 200_000)
    writers = [started(_write_often, path, letter) for letter in "bc"]
    seen = set()
    while any(writer.is_alive() for writer in writers):
        text = path.read_text()
        assert len(text) == 200_000 and len(set(text)) == 1
        seen.add(text[0])
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert seen & {"b", "c"}
    assert sorted(p.name for p in tmp_path.iterdir()) == [".file.lock", "file"]


def _die_half_way(path):
    with store.locked(path), store.replacing(path) as fresh:
        fresh.write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_writer_leaves_the_old_file_and_no_lock(tmp_path):
    path = tmp_path / "file"
    write(path, "whole")
    dead = started(_die_half_way, path)
    dead.join()
    assert dead.exitcode == -signal.SIGKILL
    assert path.read_text() == "whole"
    assert [p for p in tmp_path.iterdir() if p.suffix == ".new"]
    with store.locked(path, patience=0):
        pass
    write(path, "next")
    assert path.read_text() == "next"
    assert not [p for p in tmp_path.iterdir() if p.suffix == ".new"]


def _hold(path, ready):
    with store.locked(path):
        ready.set()
        time.sleep(30)


def test_a_lock_that_is_held_is_told(tmp_path):
    path, ready = tmp_path / "file", fork.Event()
    holder = started(_hold, path, ready)
    try:
        assert ready.wait(10)
        with pytest.raises(Refusal) as caught, store.locked(path, patience=0.1):
            pass
        assert caught.value.code == "store.locked" and ".file.lock" in caught.value.what
    finally:
        holder.kill()
        holder.join()
    with store.locked(path, patience=1):
        pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_writer_that_raises_leaves_nothing(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(error), store.replacing(path) as fresh:
        fresh.write_text("new")
        raise error
    assert [p.name for p in tmp_path.iterdir()] == ["file"] and path.read_text() == "old"


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write(link, "new")
    assert link.is_symlink() and real.read_text() == "new"


def test_what_is_set_aside_keeps_its_bytes(tmp_path):
    names = []
    for text in ("one", "two", "three"):
        (tmp_path / "file").write_text(text)
        names.append(store.set_aside(tmp_path / "file").name)
    assert names == ["file.corrupt", "file.corrupt-1", "file.corrupt-2"]
    assert [(tmp_path / name).read_text() for name in names] == ["one", "two", "three"]


def test_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("FRTSPEC_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert store.cache_dir() == tmp_path / "own"
    monkeypatch.delenv("FRTSPEC_CACHE_DIR")
    assert store.cache_dir() == tmp_path / "xdg" / "frtspec"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert store.cache_dir() == tmp_path / ".cache" / "frtspec"
