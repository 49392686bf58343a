"""The built wheel, used from another folder: the catalog, a project of one's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

OWN_BINDING = "mine"
OWN_PROJECT = """[tool.frtspec]
specs = ["specs"]
out = "src"
package = "my_kernels"
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist of this checkout, in the current environment."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run([*build, str(ROOT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files, laid out as an installer does."""
    target = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def python(installed: Path, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in ``folder`` with the wheel's files before everything else."""
    return subprocess.run(
        [sys.executable, *args],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def frtspec(installed: Path, folder: Path, *args: str) -> str:
    done = python(installed, folder, "-m", "frtspec", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_carries_everything(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, suffix in (("specs", ".frt"), ("grammar", ".lark"), ("templates", ".j2")):
        here = {
            f"frtspec/_data/{path.relative_to(ROOT).as_posix()}"
            for path in (ROOT / folder).rglob(f"*{suffix}")
        }
        assert here and here <= names
    generated = {
        path.relative_to(ROOT / "generated").as_posix()
        for path in (ROOT / "generated").rglob("*.py")
    }
    assert generated and generated <= names
    assert "flashrt_gen/MANIFEST.json" in names
    kernels = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "frtspec" / "packages").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert any(name.endswith("torch-cuda/tuning/sm90.json") for name in kernels)
    assert kernels <= names
    assert {"frtspec/py.typed", "flashrt_gen/py.typed"} <= names
    assert not [name for name in names if name.endswith(".pyc") or name.startswith("tests")]


def test_check_and_explain_from_another_folder(installed: Path, tmp_path: Path) -> None:
    where = python(installed, tmp_path, "-c", "import frtspec; print(frtspec.__file__)").stdout
    assert where.startswith(str(installed))
    assert "no findings" in frtspec(installed, tmp_path, "check")
    assert "no findings" in frtspec(installed, tmp_path, "check", "bindings/qwen3.frt")
    assert "FRT0852" in frtspec(installed, tmp_path, "explain", "FRT0852")
    assert list(tmp_path.iterdir()) == []


def test_importing_needs_no_host_and_no_kernel_client(installed: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('kernels', 'transformers', 'diffusers', 'black', 'lark'):\n"
        "    sys.modules[name] = None\n"
        "import flashrt_gen.qwen3, flashrt_gen.siglip\n"
        "print(flashrt_gen.qwen3.__file__)\n"
    )
    done = python(installed, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(installed))


def test_the_catalog_generates_what_is_installed(installed: Path, tmp_path: Path) -> None:
    frtspec(installed, tmp_path, "gen", "bindings/qwen3.frt")
    made = tmp_path / "generated" / "flashrt_gen"
    files = sorted(path.relative_to(made) for path in made.rglob("*.py"))
    assert Path("qwen3/__init__.py") in files
    assert Path("llama/__init__.py") not in files
    for file in files:
        if file.name != "__init__.py" or file.parent == Path("qwen3"):
            assert (made / file).read_bytes() == (installed / "flashrt_gen" / file).read_bytes()


def test_a_project_of_ones_own(installed: Path, tmp_path: Path) -> None:
    """One .frt and a package name: what did not change comes from flashrt_gen."""
    own_project(installed, tmp_path)
    assert "no findings" in frtspec(installed, tmp_path, "check")
    frtspec(installed, tmp_path, "gen")
    package = tmp_path / "src" / "my_kernels"
    assert (package / OWN_BINDING / "__init__.py").is_file()
    manifest = json.loads((package / "MANIFEST.json").read_text())
    assert manifest["package"] == "my_kernels"
    assert not list(package.rglob("decoder_ffn_v1.py"))
    code = (
        "import sys; sys.path.insert(0, 'src')\n"
        f"import my_kernels.{OWN_BINDING} as mine\n"
        "from flashrt_gen.structures import decoder_ffn_v1\n"
        "assert callable(mine.attach)\n"
        "print(sorted(m for m in sys.modules if m.startswith(('flashrt_gen', 'my_kernels'))))\n"
    )
    done = python(installed, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    assert "flashrt_gen.structures.decoder_ffn_v1" in done.stdout
    frtspec(installed, tmp_path, "gen", "--check")


def test_an_overlaid_structure_is_generated_anew(installed: Path, tmp_path: Path) -> None:
    own_project(installed, tmp_path)
    name = "structures/decoder_ffn/v1.frt"
    text = (installed / "frtspec/_data/specs" / name).read_text("utf-8")
    overlay = tmp_path / "specs" / name
    overlay.parent.mkdir(parents=True)
    assert "1048576" in text
    overlay.write_text(text.replace("1048576", "2097152"), "utf-8")
    frtspec(installed, tmp_path, "gen")
    package = tmp_path / "src" / "my_kernels"
    assert "2097152" in (package / "structures/decoder_ffn_v1.py").read_text("utf-8")
    code = f"import sys; sys.path.insert(0, 'src'); import my_kernels.{OWN_BINDING}"
    done = python(installed, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr


def test_a_changed_catalog_is_noticed(installed: Path, tmp_path: Path) -> None:
    """The digest assertion: code made against one catalog refuses another."""
    own_project(installed, tmp_path)
    frtspec(installed, tmp_path, "gen")
    module = tmp_path / "other" / "flashrt_gen"
    module.parent.mkdir()
    copied = subprocess.run(
        [
            sys.executable,
            "-c",
            "import shutil, sys; shutil.copytree(sys.argv[1], sys.argv[2])",
            str(installed / "flashrt_gen"),
            str(module),
        ],
        check=False,
    )
    assert copied.returncode == 0
    for file in module.rglob("*.py"):
        text = file.read_text("utf-8")
        head, found, tail = text.partition('CONTRACT_DIGEST = "')
        if found:
            file.write_text(f"{head}{found}0{tail[1:]}", "utf-8")
    code = f"import sys; sys.path[:0] = ['other', 'src']\nimport my_kernels.{OWN_BINDING}\n"
    done = python(installed, tmp_path, "-c", code)
    assert done.returncode != 0
    assert "digest" in done.stderr and "frtspec gen" in done.stderr


def test_a_clash_shows_both_places(installed: Path, tmp_path: Path) -> None:
    own_project(installed, tmp_path)
    text = (installed / "frtspec/_data/specs/structures/decoder_ffn/v1.frt").read_bytes()
    (tmp_path / "specs" / "copy.frt").write_bytes(text)
    done = python(installed, tmp_path, "-m", "frtspec", "check")
    assert done.returncode == 1, done.stdout
    assert "specs/copy.frt:" in done.stdout
    assert "structures/decoder_ffn/v1.frt:" in done.stdout


def own_project(installed: Path, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(OWN_PROJECT)
    (folder / "specs").mkdir()
    text = (installed / "frtspec/_data/specs/bindings/qwen3.frt").read_text("utf-8")
    (folder / "specs" / "mine.frt").write_text(
        text.replace("binding qwen3 {", f"binding {OWN_BINDING} {{"), "utf-8"
    )
