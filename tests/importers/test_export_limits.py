"""What flash-rt's format has no place for is said at its place, and nothing is written."""

from __future__ import annotations

import pytest
import yaml
from flash_rt.catalog.binding import validate_binding

from frtspec.diag.source import SourceFile
from frtspec.importers.flashrt.export import Exported, export
from frtspec.sema import analyse
from frtspec.syntax.parse import parse
from importers import kit

QWEN3 = kit.COMMITTED / "flashrt_qwen3_8b.frt"
PI05 = kit.COMMITTED / "flashrt_pi05.frt"
TICK = kit.COMMITTED / "flashrt_smolvla_tick.frt"

VARIANT_CHOSEN = (
    "variant `activation` is chosen by the host's config, and flash-rt's format takes one value"
)


def exported(text: str, named: bool = True) -> Exported:
    source = SourceFile.from_text("mine.frt", text)
    tree = parse(source)
    about = kit.world().specs if "pipeline" in text else kit.regions()
    analysis = analyse([*about, (source, tree.file)])
    mine = [*tree.diagnostics, *(d for d in analysis.diagnostics if d.span.path == "mine.frt")]
    assert not mine, mine
    bindings = [b for b in analysis.program.bindings.values() if b.origin.span.path == "mine.frt"]
    return export(analysis.program, bindings, named)


def edited(text: str, *edits: tuple[str, str]) -> str:
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        (
            [("D = 4096", "D = config.hidden_size")],
            "dim `D` is read from the host's config, and flash-rt's format takes a number",
        ),
        (
            [("= silu", '= match config.hidden_act { "silu" => silu, else => refuse }')],
            VARIANT_CHOSEN,
        ),
        (
            [("in 0..L", "in 1..L")],
            "the layers are counted otherwise than from 0 and below their count",
        ),
        (
            [("in 0..L", "in 0..=L")],
            "the layers are counted otherwise than from 0 and below their count",
        ),
        (
            [("in 0..L", "in 0..L where i > 0")],
            "not every layer has the region; in flash-rt's format each has",
        ),
        (
            [("w_up   = up_proj.weight", "w_up   = chunks(gate_up.weight, w_gate, w_up)")],
            "slot `w_up` is a view of a parameter, which flash-rt's format lacks",
        ),
        (
            [("w_up   = up_proj.weight : out_in", "w_up   = up_proj.weight : in_out")],
            "its matrices have several layouts; flash-rt's format has one",
        ),
    ],
)
def test_a_region_that_says_more_than_the_format_can(
    edits: list[tuple[str, str]], message: str
) -> None:
    made = exported(edited(QWEN3.read_text("utf-8"), *edits))
    assert made.files == {}
    (found,) = made.diagnostics
    assert (found.code, found.message, found.severity) == ("FRT0899", message, "error")
    assert found.span.path == "mine.frt" and found.span.end > found.span.start


@pytest.mark.parametrize(
    "lines",
    [
        ["      variant style = scale_shift_gate\n"],
        ["      slot style_w = dense.weight : out_in\n", "      slot style_b = dense.bias\n"],
    ],
)
def test_a_producer_that_leaves_its_order_or_weight_open(lines: list[str]) -> None:
    text = edited(PI05.read_text("utf-8"), *((line, "") for line in lines))
    (found,) = exported(text).diagnostics
    assert found.code == "FRT0899" and "seat `cond` does not say" in found.message


def test_numbers_may_stand_in_the_seat_itself() -> None:
    text = edited(
        QWEN3.read_text("utf-8"),
        ("dims { D = 4096, F = 12288, L = 36 }", ""),
        ("dims { D = D, F = F }", "dims { D = 4096, F = 12288 }"),
        ("in 0..L", "in 0..36"),
    )
    made = exported(text)
    document = yaml.safe_load(made.files["qwen3_8b.yaml"])
    assert document["dims"] == {"D": 4096, "F": 12288, "layers": 36}


def test_a_place_in_a_model_is_no_words() -> None:
    text = edited(
        TICK.read_text("utf-8"),
        ('buffer cond_features = "past_key_values"', "buffer cond_features = output of embed"),
    )
    made = exported(text)
    assert [d.code for d in made.diagnostics] == ["FRT0899"]
    assert "is a place in a model" in made.diagnostics[0].message


def test_a_binding_without_a_counterpart_is_passed_over_unless_it_was_named() -> None:
    text = edited(QWEN3.read_text("utf-8"), ("binding flashrt_qwen3_8b", "binding mine"))
    assert [d.code for d in exported(text).diagnostics] == ["FRT0895"]
    assert exported(text, named=False) == Exported({}, ())


def test_a_binding_of_ones_own_can_be_named_for_the_other_catalog() -> None:
    text = edited(
        QWEN3.read_text("utf-8"),
        ("binding flashrt_qwen3_8b", "binding mine"),
        ("export flash_rt {", 'export flash_rt {\n    binding = "mine.8b",'),
    )
    made = exported(text)
    assert list(made.files) == ["mine.8b.yaml"] and not made.diagnostics
    document = yaml.safe_load(made.files["mine.8b.yaml"])
    assert validate_binding(document, expected_name="mine.8b").name == "mine.8b"
