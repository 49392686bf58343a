"""Who may import whom, read from the sources, and what that buys at run time."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMPILER = ("diag", "syntax", "ir", "sema", "checks", "codegen", "diff", "importers", "lsp")
COMPILER_MODULES = tuple(f"frtspec.{name}" for name in COMPILER)
SHARED_MODULES = ("bump", "closure", "config", "files", "lock", "project", "resources", "tomltext")
"""Modules at the top of the package: part of the compiler side."""
LIVE = ("torch", "transformers", "diffusers", "kernels", "numpy", "frtspec.runtime", "frtspec.live")
DOOR = ("frtspec.live.single", "frtspec.live.single.Part", "frtspec.live.single.get")
"""What ``flashrt_gen.get`` loads when it is called: one module is scanned, not attached."""


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module a file imports, wherever in it, with the line."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def offences(files: list[Path], forbidden: tuple[str, ...]) -> list[str]:
    assert files, "nothing to look at"
    return [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in files
        for module, line in imports(path)
        if any(module == name or module.startswith(f"{name}.") for name in forbidden)
    ]


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_the_compiler_imports_nothing_live() -> None:
    files = [file for name in COMPILER for file in python_files(f"frtspec/{name}")]
    files += [ROOT / "frtspec" / f"{name}.py" for name in SHARED_MODULES]
    assert offences(files, (*LIVE, "frtspec.cli")) == []


def test_the_runtime_imports_no_compiler() -> None:
    forbidden = (*COMPILER_MODULES, "frtspec.cli", "frtspec.live", "lark", "jinja2", "black")
    forbidden += ("yaml", *(f"frtspec.{name}" for name in SHARED_MODULES))
    assert offences(python_files("frtspec/runtime"), forbidden) == []


def test_dims_are_pure() -> None:
    allowed = {"frtspec.dims", *sys.stdlib_module_names}
    foreign = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in python_files("frtspec/dims")
        for module, line in imports(path)
        if module.partition(".")[0] not in allowed and not module.startswith("frtspec.dims")
    ]
    assert foreign == []


def test_generated_code_imports_torch_and_the_runtime_only() -> None:
    files = python_files("generated")
    if not files:
        pytest.fail("generated/ holds no package; run `frtspec gen`")
    allowed = ("torch", "frtspec.dims", "frtspec.runtime", "flashrt_gen", "frtspec")
    foreign = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in files
        for module, line in imports(path)
        if module.partition(".")[0] not in sys.stdlib_module_names
        and not any(module == name or module.startswith(f"{name}.") for name in allowed[:-1])
        and module != "frtspec"
        and not (path.name == "__init__.py" and path.parent.name == "flashrt_gen" and module in DOOR)
    ]
    assert foreign == []


def test_the_command_line_loads_late() -> None:
    """Importing the entry point and building its parser loads no phase and nothing heavy."""
    loaded = modules_after("from frtspec.cli.commands import parser; parser()")
    heavy = {"lark", "jinja2", "black", "rich", "torch", "json.tool"}
    assert not heavy & loaded
    assert not {name for name in loaded if name.startswith(("frtspec.syntax", "frtspec.sema"))}


def test_a_generated_host_loads_no_compiler() -> None:
    loaded = modules_after("import flashrt_gen.qwen3")
    assert {"lark", "jinja2", "black", "yaml", "rich"} & loaded == set()
    compiler = {name for name in loaded if name.startswith((*COMPILER_MODULES, "frtspec.cli"))}
    assert compiler == set()


def test_check_runs_without_torch() -> None:
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'transformers', 'numpy'):\n"
        "            raise ImportError(f'{name} is blocked')\n"
        "sys.meta_path.insert(0, Block())\n"
        "from frtspec.cli.main import main\n"
        "sys.exit(main(['check']))\n"
    )
    done = run_python(code)
    assert done.returncode == 0, done.stdout + done.stderr


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(ROOT), str(ROOT / "generated")))
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def modules_after(code: str) -> set[str]:
    done = run_python(f"{code}\nimport sys; print('\\n'.join(sys.modules))")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())
