"""A package of one's own beside the installed one: what is shared, what is made again."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from codegen_kit import COPY, ROOT, SPECS, catalog, importable, program_of, tree, written

from frtspec.codegen import External, generate, manifest
from frtspec.ir.decl import Program
from frtspec.runtime import Refusal

BINDING = """frt 1

binding mine {
  host transformers ">=5" class MyModel
  dims { K = config.width, L = config.depth }
  each i in 0..L {
    seat o : linear_proj version 1 at layers.{i}.o {
      dims { K = K, N = K }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at layers.{i}.o { x = input, y = output }
    }
  }
}
"""


def specs(**changes: tuple[str, str]) -> dict[str, str]:
    """The catalog without its bindings, and ours; ``changes`` edit single files."""
    texts = {
        path.relative_to(SPECS).with_suffix("").as_posix().replace("/", "__"): path.read_text()
        for path in sorted(SPECS.rglob("*.frt"))
        if path.parent.name != "bindings"
    }
    texts["mine"] = BINDING
    for name, (old, new) in changes.items():
        assert old in texts[name]
        texts[name] = texts[name].replace(old, new)
    return texts


@pytest.fixture(scope="module")
def installed() -> External:
    found = manifest.read(ROOT / "generated" / "flashrt_gen" / manifest.NAME)
    assert found is not None
    return External("flashrt_gen", found)


def ours(program: Program, out: Path, installed: External) -> dict[str, bytes]:
    written(program, out, package="my_kernels", external=installed, only={"mine.frt"})
    return tree(out / "my_kernels")


def test_unchanged_declarations_are_imported(tmp_path: Path, installed: External) -> None:
    made = ours(program_of(**specs()), tmp_path, installed)
    assert sorted(made) == [
        "MANIFEST.json",
        "__init__.py",
        "mine/__init__.py",
        "py.typed",
        "schemes/__init__.py",
    ]
    assert b"def get" not in made["__init__.py"]  # it has no structures of its own
    text = made["mine/__init__.py"].decode()
    assert "from flashrt_gen.structures import linear_proj_v1\n" in text
    assert "from my_kernels import schemes\n" in text
    digest = catalog().structures["linear_proj", 1].origin.contract_digest
    assert f'rt.require_digest(\n    linear_proj_v1.SPEC, "{digest}"\n)' in text
    schemes = made["schemes/__init__.py"].decode()
    imported = re.search(r"from flashrt_gen\.schemes import \(([^)]*)\)", schemes)
    assert imported is not None
    assert {name.strip() for name in imported[1].split(",")} - {""} == set(catalog().schemes)
    with importable(tmp_path, "my_kernels"):
        module = importlib.import_module("my_kernels.mine")
        assert module.HOST.schemes["fp8_static"].routes
        assert module.HOST.name == "mine"


def test_a_changed_structure_is_generated_again(tmp_path: Path, installed: External) -> None:
    """And what depends on it: its impl, the schemes that use the impl."""
    change = ("let a = gelu_tanh(a) ", "let a = gelu_erf(a)  ")
    made = ours(program_of(**specs(structures__linear_proj__v1=change)), tmp_path, installed)
    assert {
        "structures/linear_proj_v1.py",
        "impls/linear_proj_fp8_static.py",
        "schemes/fp8_static.py",
        "gates/linear_proj_v1.py",
    } <= set(made)
    assert not {"structures/decoder_ffn_v1.py", "impls/norm_fused_bf16.py"} & set(made)
    binding = made["mine/__init__.py"].decode()
    assert "from my_kernels.structures import linear_proj_v1\n" in binding
    assert "require_digest" not in binding
    scheme = made["schemes/fp8_static.py"].decode()
    assert "from flashrt_gen.impls.decoder_ffn_fp8_static import DecoderFfnFp8Static\n" in scheme
    assert "from my_kernels.impls.linear_proj_fp8_static import LinearProjFp8Static\n" in scheme
    assert "require_digest(\n    DecoderFfnFp8Static.SPEC," in scheme
    with importable(tmp_path, "my_kernels"):
        module = importlib.import_module("my_kernels.mine")
        mine = module.HOST.schemes["fp8_static"].route("linear_proj", None).impl
        assert mine is not None and mine.__module__.startswith("my_kernels.")
        assert importlib.import_module("my_kernels").get("linear_proj").package == "my_kernels"


def test_a_comment_shares_the_contract(tmp_path: Path, installed: External) -> None:
    """Another text with the same meaning is imported, not made again."""
    change = ("frt 1\n", "frt 1\n# ours, word for word\n")
    made = ours(program_of(**specs(structures__linear_proj__v1=change)), tmp_path, installed)
    assert "structures/linear_proj_v1.py" not in made


def test_another_contract_installed_is_refused_on_import(
    tmp_path: Path, installed: External
) -> None:
    ours(program_of(**specs()), tmp_path, installed)
    path = tmp_path / "my_kernels" / "mine" / "__init__.py"
    digest = catalog().structures["linear_proj", 1].origin.contract_digest
    path.write_text(path.read_text().replace(digest, "0" * 64))
    with (
        importable(tmp_path, "my_kernels"),
        pytest.raises(Refusal, match="run `frtspec gen` again"),
    ):
        importlib.import_module("my_kernels.mine")


def test_without_an_installed_package_everything_is_made(tmp_path: Path) -> None:
    written(program_of(**specs()), tmp_path, package="my_kernels", only={"mine.frt"})
    made = tree(tmp_path / "my_kernels")
    assert {"structures/decoder_ffn_v1.py", "impls/qkv_pack_fp8_static.py"} <= set(made)
    assert all(b"flashrt_gen" not in data for data in made.values())
    with importable(tmp_path, "my_kernels"):
        assert importlib.import_module("my_kernels.mine").HOST.name == "mine"


def test_the_catalog_package_shares_nothing_with_itself(
    tmp_path: Path, installed: External
) -> None:
    written(catalog(), tmp_path, package="flashrt_gen", external=installed)
    assert tree(tmp_path / "flashrt_gen") == tree(ROOT / "generated" / "flashrt_gen")


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (COPY.replace("in  x ", "in  torch ").replace("= x\n", "= torch\n"), "torch"),
        (COPY.replace("in  x ", "in  record ").replace("= x\n", "= record\n"), "record"),
        (COPY.replace("in  x ", "in  len ").replace("= x\n", "= len\n"), "len"),
        (COPY.replace("M, D", "M, SPEC").replace("rows M, SPEC", "rows M, SPEC"), "SPEC"),
    ],
)
def test_a_name_that_generated_code_uses(text: str, name: str, tmp_path: Path) -> None:
    report = generate(program_of(text), tmp_path, package="pkg")
    assert [d.code for d in report.diagnostics] == ["FRT0835"]
    assert f"`{name}`" in report.diagnostics[0].message
    assert list(tmp_path.iterdir()) == []


def test_a_value_may_be_called_anything(tmp_path: Path) -> None:
    """Locals give way: only what callers name has to keep its name."""
    text = COPY.replace(
        "point x_in = x\n    yield y = x_in",
        "let torch = x * 2\n    let ops = torch + x\n    let l = ops\n    yield y = l",
    )
    written(program_of(text), tmp_path, package="pkg")
    source = (tmp_path / "pkg" / "structures" / "copy_v1.py").read_text()
    assert "torch_ = x * 2\n" in source and "l_ = ops_\n" in source


def test_text_of_a_spec_cannot_leave_its_docstring(tmp_path: Path) -> None:
    text = COPY.replace(
        "dim M, D", 'status imported "a \\"quoted\\" reason"\n  dim M, D', 1
    ).replace(
        "{\n  status", '{\n  """Ends with a quote\\" and \\\\ and \'\'\' inside."""\n  status', 1
    )
    written(program_of(text), tmp_path, package="pkg")
    with importable(tmp_path, "pkg"):
        module = importlib.import_module("pkg.structures.copy_v1")
    assert module.SPEC.imported == 'a "quoted" reason'
