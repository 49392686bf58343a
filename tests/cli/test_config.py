"""[tool.frtspec]: defaults, places of mistakes, and no exception for any bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.config import ConfigResult, _Reader, load_config
from frtspec.diag.place import place

GOOD = """[project]
name = "mine"

[tool.frtspec]
specs = ["specs", "more"]
out = "build/gen"
package = "my_kernels"
"""


def project(folder: Path, text: str | bytes) -> ConfigResult:
    for name in ("specs", "more"):
        (folder / name).mkdir(exist_ok=True)
    data = text.encode() if isinstance(text, str) else text
    (folder / "pyproject.toml").write_bytes(data)
    return load_config(folder)


def lines(result: ConfigResult) -> list[str]:
    assert result.source is not None
    sources = {result.source.path: result.source}
    return [f"{place(d.span, sources)} {d.code} {d.message}" for d in result.diagnostics]


def test_a_whole_table(tmp_path: Path) -> None:
    result = project(tmp_path, GOOD)
    assert result.diagnostics == ()
    assert result.config.specs == (tmp_path / "specs", tmp_path / "more")
    assert result.config.out == tmp_path / "build/gen"
    assert result.config.package == "my_kernels"


def test_the_nearest_table_above_holds(tmp_path: Path) -> None:
    project(tmp_path, GOOD)
    inner = tmp_path / "src" / "deep"
    inner.mkdir(parents=True)
    (inner / "pyproject.toml").write_text('[project]\nname = "frtspec-plugin"\n')
    result = load_config(inner)
    assert result.config.root == tmp_path
    assert result.config.package == "my_kernels"


def test_defaults(tmp_path: Path) -> None:
    result = load_config(tmp_path)
    assert (result.config.specs, result.config.package) == ((), None)
    assert result.config.out == tmp_path / "generated"
    (tmp_path / "specs").mkdir()
    assert load_config(tmp_path).config.specs == (tmp_path / "specs",)


def test_a_table_without_spec_roots_means_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.frtspec]\npackage = "p"\n')
    assert load_config(tmp_path).config.specs == (tmp_path,)


@pytest.mark.parametrize(
    "text, wanted",
    [
        (
            '[tool.frtspec]\nspec = ["specs"]\n',
            "pyproject.toml:2:1 FRT0852 unknown key `spec` in [tool.frtspec]",
        ),
        (
            '[tool.other]\nspec = 1\n[tool.frtspec]\n  "spec" = 1\n[tool.z]\nspec = 2\n',
            "pyproject.toml:4:3 FRT0852 unknown key `spec` in [tool.frtspec]",
        ),
        (
            "[tool]\nfrtspec = { speks = [] }\n",
            "pyproject.toml:2:13 FRT0852 unknown key `speks` in [tool.frtspec]",
        ),
        (
            '[tool.frtspec]\nspecs = "specs"\n',
            'pyproject.toml:2:1 FRT0853 `specs` must be a list of folders, for example ["specs"]',
        ),
        (
            "[tool.frtspec]\nout = 3\n",
            'pyproject.toml:2:1 FRT0853 `out` must be a path, for example "generated"',
        ),
        (
            '[tool.frtspec]\nspecs = ["specs", "gone"]\n',
            "pyproject.toml:2:19 FRT0854 the spec root `gone` is no folder",
        ),
        (
            f'[tool.frtspec]\nspecs = ["{"a" * 5000}"]\n',
            f"pyproject.toml:2:10 FRT0854 the spec root `{'a' * 5000}` is no folder",
        ),
        (
            '[tool.frtspec]\nspecs = ["a\\u0000b"]\n',
            "pyproject.toml:2:1 FRT0854 the spec root `a\0b` is no folder",
        ),
        (
            '[tool.frtspec]\npackage = "flashrt_gen"\n',
            "pyproject.toml:2:11 FRT0855 `flashrt_gen` is installed with frtspec and can't be"
            + " extended",
        ),
        (
            '[tool.frtspec]\npackage = "my-kernels"\n',
            "pyproject.toml:2:11 FRT0855 `my-kernels` is no package name",
        ),
        (
            '[tool.frtspec]\npackage = "torch"\n',
            "pyproject.toml:2:11 FRT0855 `torch` would hide the package of that name",
        ),
        ("[tool]\nfrtspec = 3\n", "pyproject.toml:2:1 FRT0853 `tool.frtspec` must be a table"),
        (
            "[tool.frtspec]\npackage = = 3\n",
            "pyproject.toml:2:11 FRT0851 not valid TOML: invalid value",
        ),
        (
            '[tool.frtspec]\npackage = "a',
            "pyproject.toml:2:13 FRT0851 not valid TOML: unterminated string",
        ),
    ],
)
def test_mistakes_are_placed(tmp_path: Path, text: str, wanted: str) -> None:
    assert lines(project(tmp_path, text)) == [wanted]


def test_all_mistakes_in_one_run(tmp_path: Path) -> None:
    found = lines(project(tmp_path, '[tool.frtspec]\npakage = "a"\nout = 1\nspecs = [1]\n'))
    assert [line.split()[1] for line in found] == ["FRT0852", "FRT0853", "FRT0853"]


def test_a_misspelt_key_is_told(tmp_path: Path) -> None:
    result = project(tmp_path, '[tool.frtspec]\npakage = "a"\n')
    assert result.diagnostics[0].help == "did you mean `package`?"


def test_someone_elses_broken_file_is_not_ours(tmp_path: Path) -> None:
    result = project(tmp_path, "[tool.other]\nfrtspec = = 1\n")
    assert result.diagnostics == () and result.config.package is None


def test_latin_1(tmp_path: Path) -> None:
    found = lines(project(tmp_path, '[tool.frtspec]\nout = "größe"\n'.encode("latin-1")))
    assert found == ["pyproject.toml:2:10 FRT0851 not valid TOML: it is not UTF-8"]


@given(st.binary(max_size=60), st.sampled_from([b"", b"[tool.frtspec]\n", b"[tool]\nfrtspec."]))
def test_any_bytes(body: bytes, head: bytes) -> None:
    reader = _Reader("pyproject.toml", head + body, Path("/nowhere"))
    if reader.concerns_us():
        result = reader.result()
        assert all(place(d.span, {"pyproject.toml": reader.source}) for d in result.diagnostics)
