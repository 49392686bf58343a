"""Each fault in a binding is found where it stands, and none of them is written over."""

from __future__ import annotations

from pathlib import Path

import pytest

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.catalog import Catalog
from frtspec.importers.flashrt.convert import Imported, convert
from importers import kit

REGION, TICK, VISION = "qwen3_8b", "pi05_tick", "groot_n16_dit"

ERRORS = (
    # file, old, new, code, the text that the finding is placed at
    (REGION, "dims: {D: 4096", "dims: {D: [4096", "FRT0881", None),
    (REGION, "dims: {D: 4096", "dims: &all {D: 4096", None, None),
    (
        REGION,
        "boundary_dtype: bf16",
        "boundary_dtype: !!python/name:os.system bf16",
        "FRT0881",
        "!!python",
    ),
    (
        REGION,
        "structure: decoder_ffn",
        "structure: decoder_ffn\nstructure: vision_ffn",
        "FRT0882",
        "structure: vision",
    ),
    (REGION, "    w_up:", "    w_gate:", "FRT0882", 'w_gate: "model.layers.{i}.mlp.up'),
    (REGION, "binding: qwen3_8b", "binding: qwen3", "FRT0883", "qwen3\n"),
    (REGION, "binding: qwen3_8b", "bindung: qwen3_8b", "FRT0883", None),
    (REGION, "structure: decoder_ffn", "structure: decoder_fnn", "FRT0885", "decoder_fnn"),
    (REGION, "structure: decoder_ffn", "structure: [decoder_ffn]", "FRT0883", "[decoder_ffn]"),
    (REGION, "layers: 36", "layers: many", "FRT0883", "many"),
    (REGION, "layers: 36", "layers: 0", "FRT0883", "0}"),
    (REGION, ", layers: 36", "", "FRT0883", None),
    (REGION, "D: 4096", "Q: 4096", "FRT0885", "Q: 4096"),
    (REGION, "activation: silu", "activation: relu", "FRT0885", "relu"),
    (REGION, "activation: silu", "act: silu", "FRT0885", "act: silu"),
    (REGION, "w_down:", "w_nope:", "FRT0885", "w_nope"),
    (
        REGION,
        '    w_norm: "model.layers.{i}.post_attention_layernorm.weight"\n',
        "",
        "FRT0883",
        "transformers:",
    ),
    (REGION, "layout: out_in", "layout: sideways", "FRT0885", "sideways"),
    (REGION, "    layout: out_in\n", "", "FRT0883", "transformers:"),
    (REGION, "layers.{i}.mlp.up_proj", "layers.0.mlp.up_proj", "FRT0883", '"model.layers.0'),
    (REGION, "layers.{i}.mlp.up_proj", "layers.{k}.mlp.up_proj", "FRT0883", '"model.layers.{k}'),
    (
        REGION,
        'module_path: "model.layers.{i}"',
        'module_path: "other.layers.{i}"',
        "FRT0890",
        '"other',
    ),
    (
        REGION,
        'module_path: "model.layers.{i}"',
        'modul_path: "model.layers.{i}"',
        "FRT0890",
        "transformers:\n    modul",
    ),
    (REGION, "hosts:", "hosts:\n  other: {module_path: 'a.{i}'}", "FRT0890", None),
    (REGION, "decode: {m_class: micro", "de code: {m_class: micro", "FRT0883", "de code"),
    (REGION, "decode: {m_class: micro", "decode: {m_klass: micro", "FRT0883", "{m_klass"),
    (REGION, "hosts:", "coverage: {contract: complete_hot_path}\nhosts:", "FRT0883", None),
    (VISION, "{const: ones}", "{const: twos}", "FRT0885", "twos"),
    (
        "pi05",
        "chunk_order: [scale, shift, gate]",
        "chunk_order: [gate, scale]",
        "FRT0885",
        "gate, scale",
    ),
    ("pi05", "residual_gate: true", "residual_gate: false", "FRT0883", "conditioning:"),
    ("pi05", "residual_gate: true", "residual_gate: perhaps", "FRT0883", "perhaps"),
    (TICK, "  obs_encode:", "  obs_encodes:", "FRT0885", "obs_encodes:"),
    (TICK, "      cond_features:", "      cond_feature:", "FRT0885", "cond_feature:"),
    (
        TICK,
        "tick: [obs_encode, action_denoise]",
        "tick: [obs_encode, action]",
        "FRT0885",
        "action]",
    ),
    (TICK, "  replan: action_denoise", "  sometimes: action_denoise", "FRT0885", "sometimes"),
    (TICK, '"@pipeline.num_steps"', "0", "FRT0883", "0\n"),
    (TICK, "capture: full_graph_or_eager", "loop_steps: 4", "FRT0883", "4\n"),
    (TICK, "capture: full_graph_or_eager", "capture: 4", "FRT0883", "4\n"),
    (TICK, "capture: full_graph_or_eager", "policy: boldest", "FRT0885", "boldest"),
    (TICK, "capture: full_graph_or_eager", "mutation_guard: deep", "FRT0885", "deep"),
    (TICK, "contract: complete_hot_path", "contract: most_of_it", "FRT0885", "most_of_it"),
    (TICK, "    - vision_encoder\n", "    - vision_encode\n", "FRT0892", "vision_encode\n"),
    (
        TICK,
        "    - vision_encoder\n",
        "    - observation_inputs\n",
        "FRT0892",
        "observation_inputs\n    - multi",
    ),
    (TICK, "name: multimodal_projector", "name: vision_encoder", "FRT0892", None),
    (TICK, "classification: control", "classification: controls", "FRT0885", "controls"),
    (TICK, "      structures: [adaln_producer]\n", "", "FRT0892", "time_conditioning\n      stage"),
    (TICK, "structures: [adaln_producer]", "structures: [cadence_static]", "FRT0892", None),
    (TICK, "structures: [adaln_producer]", "structures: [adaln]", "FRT0885", "adaln]"),
    (
        TICK,
        "classification: control",
        "classification: control\n      structures: [linear_proj]",
        "FRT0892",
        "control\n",
    ),
    (TICK, "  torch:\n", "  Torch:\n", "FRT0883", "Torch:"),
    (TICK, '"Pi05Pipeline.transformer_decoder"', '""', None, None),
)
"""Edits that keep anything from being written. No code: the edit is harmless, or blamed on
the binding as a whole."""

WARNINGS = (
    (REGION, "boundary_dtype: bf16", "boundary_dtyp: bf16", "FRT0884", "boundary_dtyp:"),
    (REGION, "boundary_dtype: bf16", "boundary_dtype: int3", "FRT0888", "int3"),
    (REGION, '">=4.51,<6"', '"about five"', "FRT0889", '"about five"'),
    (REGION, '">=4.51,<6"', '">=4.51"', "FRT0889", '">=4.51"'),
    (REGION, "  transformers:\n    layout", "  elsewhere:\n    layout", "FRT0890", "elsewhere:"),
    (TICK, "  obs_encode:\n", "  obs_encode:\n    colour: red\n", "FRT0884", "colour"),
    (TICK, "  replan: action_denoise", "  token: action_denoise", "FRT0892", "token: action"),
)


def edited(name: str, old: str, new: str) -> tuple[Catalog, Imported]:
    text = kit.text_of(name)
    assert old in text
    catalog = kit.of_text(name, text.replace(old, new, 1))
    return catalog, convert(catalog, kit.world())


def placed(found: Diagnostic, catalog: Catalog, at: str) -> bool:
    text = catalog.sources[found.span.path].text
    return text.startswith(at, found.span.start)


@pytest.mark.parametrize(("name", "old", "new", "code", "at"), ERRORS)
def test_an_error_is_found_where_it_stands(
    name: str, old: str, new: str, code: str | None, at: str | None
) -> None:
    catalog, made = edited(name, old, new)
    errors = [d for d in made.diagnostics if d.severity == "error"]
    if code is None:
        assert bool(errors) != bool(made.files)
        return
    assert made.files == {}
    same = [d for d in errors if d.code == code]
    assert same, errors
    assert at is None or any(placed(d, catalog, at) for d in same), same


@pytest.mark.parametrize(("name", "old", "new", "code", "at"), WARNINGS)
def test_a_warning_is_found_where_it_stands_and_the_rest_is_written(
    name: str, old: str, new: str, code: str, at: str
) -> None:
    catalog, made = edited(name, old, new)
    assert len(made.files) == 1
    same = [d for d in made.diagnostics if d.code == code and d.severity == "warning"]
    assert any(placed(d, catalog, at) for d in same), made.diagnostics


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pipeline_rtx.Pi05Pipeline", "pipeline_rtx.Pi05Pipelines"),
        ("pipeline_rtx.Pi05Pipeline", "pipeline_gone"),
        ('"Pi05Pipeline.transformer_decoder"', '"Pi05Pipeline.transform_decoder"'),
    ],
)
def test_what_the_package_has_not_is_told(tmp_path: Path, old: str, new: str) -> None:
    """Beside the sources of the package, which are parsed and not imported."""
    target = kit.small(tmp_path, TICK)
    source = kit.folder().parent / "models" / "pi05" / "pipeline_rtx.py"
    for path in ("models/pi05/pipeline_rtx.py", "frontends/torch/pi05_rtx.py", "__init__.py"):
        place = target.parent / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(source.read_bytes() if "models" in path else b"raise SystemExit\n")
    path = target / "bindings" / f"{TICK}.yaml"
    assert not [
        d for d in convert(kit.read(target), kit.world()).diagnostics if d.code == "FRT0898"
    ]
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    catalog = kit.read(target)
    made = convert(catalog, kit.world())
    found = [d for d in made.diagnostics if d.code == "FRT0898"]
    assert len(made.files) == 1 and len(found) == 1
    assert "Pi05" in found[0].message or "gone" in found[0].message


def test_a_structure_of_another_version_is_not_taken_for_ours(tmp_path: Path) -> None:
    target = kit.small(tmp_path, REGION)
    path = target / "structures" / "decoder_ffn" / "structure.yaml"
    path.write_text(path.read_text("utf-8").replace("version: 1", "version: 7"), "utf-8")
    made = convert(kit.read(target), kit.world())
    (error,) = [d for d in made.diagnostics if d.severity == "error"]
    assert error.code == "FRT0896" and error.help == "versions here: 1" and not made.files


def test_other_paths_than_those_that_were_looked_at_are_not_called_verified(
    tmp_path: Path,
) -> None:
    target = kit.small(tmp_path, REGION)
    path = target / "bindings" / f"{REGION}.yaml"
    path.write_text(path.read_text("utf-8").replace(".mlp.", ".ffn."), "utf-8")
    made = convert(kit.read(target), kit.world())
    (text,) = made.files.values()
    assert made.unverified == 1 and "status imported" in text and "point" not in text


def test_two_bindings_of_one_name_here_are_told(tmp_path: Path) -> None:
    target = kit.small(tmp_path, REGION)
    text = (target / "bindings" / f"{REGION}.yaml").read_text("utf-8")
    for name in ("a.b", "a-b"):
        path = target / "bindings" / f"{name}.yaml"
        path.write_text(text.replace("binding: qwen3_8b", f"binding: {name}"), "utf-8")
    made = convert(kit.read(target), kit.world())
    assert [d.code for d in made.diagnostics if d.severity == "error"] == ["FRT0897"]


def test_a_name_that_is_no_name_here_comes_back_in_the_export(tmp_path: Path) -> None:
    target = kit.small(tmp_path, REGION)
    path = target / "bindings" / f"{REGION}.yaml"
    text = path.read_text("utf-8").replace("binding: qwen3_8b", "binding: qwen3.8b")
    path.rename(path.with_name("qwen3.8b.yaml")).write_text(text, "utf-8")
    made = convert(kit.read(target), kit.world())
    (name,) = made.files
    assert name == "flashrt_qwen3_8b.frt"
    assert 'binding = "qwen3.8b"' in made.files[name]
