"""A run that reads only what the asked files need says and writes what a run over every
file does."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from frtspec import project, resources
from frtspec.cli.explain import run_example
from frtspec.cli.main import main
from frtspec.closure import Head, Purpose, head, needed
from frtspec.codegen.generate import problems
from frtspec.codegen.plan import plan
from frtspec.config import Config
from frtspec.diag.codes import codes
from frtspec.diag.codes_types import Code
from frtspec.project import Loaded, load, select

SPECS = resources.specs_dir()
NAMES = sorted(path.relative_to(SPECS).as_posix() for path in SPECS.rglob("*.frt"))
EVERY = 30
"""One in so many by default; the rest with ``-m slow``."""

CONFIG = Config(root=SPECS.parent, specs=(SPECS,), out=SPECS, package=None)
TO_CHECK = [code for code in codes().values() if code.project().argv[0] in ("check", "gen")]


def some(values: list[str]) -> list[object]:
    return [
        pytest.param(value, marks=() if place % EVERY == 0 else (pytest.mark.slow,))
        for place, value in enumerate(values)
    ]


@pytest.fixture(scope="module")
def whole() -> Loaded:
    with contextlib.chdir(SPECS.parent):
        return load(select([], CONFIG, SPECS.parent))


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    def all_of(heads: dict[str, Head], asked: object, purpose: Purpose) -> frozenset[str]:
        return frozenset(heads)

    monkeypatch.setattr(project, "needed", all_of)
    return monkeypatch


def alone(name: str, purpose: Purpose) -> Loaded:
    return load(select([f"specs/{name}"], CONFIG, SPECS.parent), purpose=purpose)


# ---------------------------------------------------------------- the catalog


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_catalog_means_the_same(
    name: str, whole: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SPECS.parent)
    loaded = alone(name, Purpose.CHECK)
    assert loaded.diagnostics == () and loaded.left_out == ()
    assert problems(loaded.program, loaded.selection.asked) == ()
    for table, of_all in _tables(loaded, whole):
        assert table.items() <= of_all.items()
        asked = {key for key, decl in of_all.items() if decl.origin.path == name}
        assert asked <= table.keys()


def _tables(one: Loaded, other: Loaded) -> Iterator[tuple[dict, dict]]:  # type: ignore[type-arg]
    for kind in ("structures", "impls", "schemes", "bindings", "pipelines"):
        yield getattr(one.program, kind), getattr(other.program, kind)


@pytest.mark.parametrize("name", some(NAMES))
def test_what_is_generated_from_it_is_the_same(
    name: str, whole: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SPECS.parent)
    parts = [
        plan(loaded.program, "flashrt_gen", None, {name})
        for loaded in (alone(name, Purpose.GENERATE), whole)
    ]
    texts = [{unit.path: (unit.inputs, unit.specs) for unit in part.units} for part in parts]
    assert texts[0] == texts[1]
    assert parts[0].specs == parts[1].specs and not parts[0].diagnostics


# ---------------------------------------------------------------- what has findings


@pytest.mark.parametrize("name", some([code.id for code in TO_CHECK]))
def test_an_example_is_told_the_same(name: str, everything: pytest.MonkeyPatch) -> None:
    code: Code = codes()[name]
    examples = [e for e in (code.project(), code.mended()) if e is not None]
    of_all = [run_example(example) for example in examples]
    everything.undo()
    assert [run_example(example) for example in examples] == of_all


MISTAKES = {
    "a name that is nearly one of the catalog": "binding b {\n  host transformers class M\n"
    "  seat s : decoder_fn version 1 at mlp {}\n}\n",
    "a name that is nothing like one": "impl i for zzz version 1 { rung emulate }\n",
    "a version that is not there": "impl i for decoder_ffn version 7 { rung emulate }\n",
    "an impl that is nearly there": "scheme s {\n  at decoder_ffn version 1 use fp8_statik\n"
    '  otherwise keep "x"\n}\n',
    "a scheme that is nearly there": "auto { else => fp8_statik }\n",
    "a second binding": 'binding flashrt_qwen3_8b {\n  host transformers ">=5.0" class M\n}\n',
    "a second structure": "structure decoder_ffn version 1 {\n  dim M\n}\n",
    "a second impl": "impl fp8_static for decoder_ffn.mlp version 1 { rung emulate }\n",
    "a second impl, its head over several lines": "impl # one\n  fp8_static\n  for\n"
    "  decoder_ffn.mlp version 1 { rung emulate }\n",
    "text that is no declaration": "strcture decoder_ffn version 1 {\n}\n",
    "a pipeline that is nearly there": 'binding b {\n  host transformers ">=5.0" class M\n'
    "  pipeline vla_tik_pipeline version 1 {}\n}\n",
}


SMALL = (
    "structures/decoder_ffn/v1.frt",
    "structures/norm_fused/v1.frt",
    "impls/decoder_ffn_fp8_static.frt",
    "bindings/flash_rt/flashrt_qwen3_8b.frt",
    "pipelines/vla_tick_pipeline/v2.frt",
    "schemes/fp8_static.frt",
)
"""A catalog of a few files, so that a run over every file is short."""


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = tmp_path / "catalog"
    for name in SMALL:
        (catalog / name).parent.mkdir(parents=True, exist_ok=True)
        (catalog / name).write_bytes((SPECS / name).read_bytes())
    monkeypatch.setattr(resources, "specs_dir", lambda: catalog)
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_about_other_files_is_told_the_same(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.frt").write_text("frt 1\n\n" + text)
    code = main(["check", "mine.frt"])
    told = capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.setattr(project, "needed", lambda heads, asked, purpose: frozenset(heads))
        assert main(["check", "mine.frt"]) == code == 1
    assert capsys.readouterr().out == told and "error[" in told


@pytest.mark.usefixtures("small")
def test_a_circle_over_files_is_opened_at_the_same_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``a`` stands in ``b``, ``b`` in ``c``, ``c`` in ``a``; ``outer`` has ``b`` and comes first."""
    for file, name, inner in (
        ("0", "outer", "b"),
        ("1", "a", "c"),
        ("2", "b", "a"),
        ("3", "c", "b"),
    ):
        slot = f"  slot s : structure {inner} version 1\n"
        Path(f"{file}.frt").write_text(
            f"frt 1\n\nstructure {name} version 1 {{\n  dim M\n{slot}}}\n"
        )
    Path("pyproject.toml").write_text('[tool.frtspec]\nspecs = ["."]\n')
    for file in "0123":
        main(["check", f"{file}.frt"])
        told = capsys.readouterr().out
        with monkeypatch.context() as patch:
            patch.setattr(project, "needed", lambda heads, asked, purpose: frozenset(heads))
            main(["check", f"{file}.frt"])
        assert capsys.readouterr().out == told


# ---------------------------------------------------------------- what is read


def test_only_what_is_needed_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    from frtspec.syntax import parse as module

    read: list[str] = []
    real = module.parse
    monkeypatch.setattr(module, "parse", lambda s: read.append(os.path.basename(s.path)) or real(s))
    monkeypatch.chdir(SPECS.parent)
    alone("impls/qkv_pack_bf16.frt", Purpose.CHECK)
    assert "qkv_pack_bf16.frt" in read and len(read) < len(NAMES) / 10


def test_a_head_is_read_from_words() -> None:
    read = head(
        "frt 1\nstructure # why\n  a version 2 { slot x : structure inner }\n"
        'impl i version 3 for b.seam version 1 { doc "structure text { " }\n'
        "auto {\n else => s }\nautos structural"
    )
    assert read.declares == {("structure", "a"), ("impl", "i"), ("auto", "auto")}
    assert read.impls == {("i", "b")}
    assert {"inner", "seam", "s", "autos", "structural"} <= read.words
    assert not {"why", "text"} & read.words


@pytest.mark.parametrize(
    "text",
    [
        "structure a { {\nstructure b {}",
        "} structure b {}",
        'structure a { "open }\nstructure b {}',
    ],
)
def test_a_head_is_found_in_a_torn_file(text: str) -> None:
    assert ("structure", "b") in head(text).declares


def test_needs_follow_names() -> None:
    texts = {
        "a": "structure a version 1 { slot s : structure b }",
        "b": "structure b version 1 {}",
        "b2": "structure b version 2 {}",
        "b i": "impl i for b version 1 {}",
        "a i": "impl i for a version 1 {}",
        "s": "scheme s { at a version 1 use i }",
        "t": "scheme t { at other version 1 use i }",
        "auto": "auto { else => s }",
        "x": "binding x { seat q : a version 1 }",
    }
    heads = {name: head(text) for name, text in texts.items()}

    def of(name: str, purpose: Purpose = Purpose.CHECK) -> set[str]:
        return set(needed(heads, {name}, purpose)) - {name}

    assert of("b") == {"b2", "b i"}
    assert of("a") == {"b", "b2", "a i"}
    assert of("b i") == {"b", "b2"}
    assert of("a i") == {"a", "b", "b2"}
    assert of("s") == {"a", "b", "b2", "a i"}
    assert of("auto") == {"s", "t", "a", "b", "b2", "a i"}
    assert of("x") == {"a", "b", "b2"}
    assert of("x", Purpose.GENERATE) == set(texts) - {"x"}
    assert of("a i", Purpose.GENERATE) == {"a", "b", "b2", "b i"}
