"""`verify`: what it shows on a right binding, and what it says of a wrong one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from frtspec import resources
from frtspec.cli.common import FINDINGS, OK, USAGE
from frtspec.cli.main import main
from frtspec.live.inmemory import SpecErrors, bindings_of
from frtspec.live.verify import problems, verify
from frtspec.live.verify_report import Report
from hosts import tiny

LLAMA = (
    (resources.specs_dir() / "bindings" / "llama.frt")
    .read_text("utf-8")
    .replace("binding llama", "binding mine")
)


def report_of(text: str, folder: Path, model: nn.Module | None = None, **more: Any) -> Report:
    """What verify says of a binding written as `text`, on the tiny Llama."""
    path = folder / "host.frt"
    path.write_text(text)
    model = tiny.LLAMA.model() if model is None else model
    (binding,) = bindings_of(path).values()
    samples = tiny.LLAMA.samples(2)
    return verify(binding, model, lambda s: model(**s), observations=samples, **more)


def said(report: Report) -> str:
    return "\n".join(f"{p.code} {p.path} {p.what} {p.fix}" for p in report_problems(report))


def report_problems(report: Report) -> list[Any]:
    return [problem for found in problems(report).values() for problem in found]


def edited(old: str, new: str) -> str:
    assert old in LLAMA
    return LLAMA.replace(old, new)


# ---------------------------------------------------------------- right


def test_everything_that_a_right_binding_says_is_shown(tmp_path: Path) -> None:
    report = report_of(LLAMA, tmp_path)
    assert report.ok, report.text()
    ffn = report.seat("ffn[0]")
    assert ffn.modules == {"model.layers.0.mlp": "LlamaMLP"}
    assert ffn.dims == {"D": tiny.D, "F": tiny.F}
    assert ffn.calls == (1, 1)
    assert [(s.name, s.shape, s.layout, s.proof) for s in ffn.slots][-2:] == [
        ("w_down", (tiny.D, tiny.F), "out_in", "shape"),
        ("w_norm", (tiny.D,), None, "vector"),
    ]
    assert {p.name: p.hits for p in ffn.points} == {
        "x_after_norm": (1, 1),
        "act_after_mul": (1, 1),
    }
    assert ffn.facts and all(fact.holds for fact in ffn.facts)
    assert ffn.reference is not None and ffn.reference < 1e-5
    square = report.seat("qkv[0]").slots[1]
    assert (square.shape, square.proof) == ((64, 64), "class Linear")


def test_the_host_is_as_it_was() -> None:
    model = tiny.LLAMA.model()
    before = [(id(m), len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    binding = tiny.LLAMA.generated().HOST
    verify(binding, model, lambda: model(**tiny.LLAMA.samples(1)[0]))
    after = [(id(m), len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    assert after == before


# ---------------------------------------------------------------- wrong


@pytest.mark.parametrize(
    ("old", "new", "code", "parts"),
    [
        pytest.param(
            "gate_proj.weight : out_in",
            "gate_proj.weight : in_out",
            "verify.layout",
            ("said to be in_out", "Linear stores out_in (96x64 here)", "model.layers.0.mlp.gate"),
            id="layout",
        ),
        pytest.param(
            "w[1] = k_proj.weight : out_in",
            "w[1] = k_proj.weight : in_out",
            "verify.layout",
            ("said to be in_out", "Linear stores out_in", "self_attn.k_proj"),
            id="layout-of-a-square",
        ),
        pytest.param(
            "config.intermediate_size",
            "config.hidden_size",
            "host.shape",
            ("w_gate", "64", "96", "the config"),
            id="dims",
        ),
        pytest.param(
            "up_proj.weight",
            "up.weight",
            "host.path",
            ("model.layers.0.mlp.up", "it holds gate_proj, up_proj, down_proj"),
            id="slot-path",
        ),
        pytest.param(
            "input of down_proj",
            "input of down",
            "host.path",
            ("point act_after_mul = input of model.layers.0.mlp.down", "it holds gate_proj"),
            id="point-path",
        ),
        pytest.param(
            "input of post_attention_layernorm",
            "input of pre_mlp_norm",
            "host.path",
            ("boundary x", "pre_mlp_norm", "post_attention_layernorm"),
            id="boundary-path",
        ),
        pytest.param(
            "class (LlamaMLP)",
            "class (Qwen3MLP)",
            "host.fact",
            ("model.layers.0.mlp", "expected class Qwen3MLP, found LlamaMLP"),
            id="fact",
        ),
        pytest.param(
            "expect returns tensor",
            "expect returns tuple",
            "host.fact",
            ("expected returns tuple, found tensor",),
            id="fact-of-a-call",
        ),
        pytest.param(
            "norm_rounding = before_weight",
            "norm_rounding = after_weight",
            "gate.reference",
            ("x_after_norm", "computes something else than decoder_ffn.mlp v1"),
            id="variant",
        ),
        pytest.param(
            "config.rms_norm_eps",
            "0.1",
            "gate.reference",
            ("x_after_norm",),
            id="param",
        ),
        pytest.param(
            '"silu" => silu',
            '"relu" => silu',
            "host.variant",
            ("config.hidden_act is 'silu'",),
            id="refused-variant",
        ),
        pytest.param(
            "D = config.hidden_size",
            "D = config.d_model",
            "host.config",
            ("LlamaConfig", "d_model"),
            id="config",
        ),
        pytest.param(
            "class LlamaForCausalLM",
            "class LlamaModel",
            "host.class",
            ("for LlamaModel", "is a LlamaForCausalLM"),
            id="class",
        ),
        pytest.param(
            '">=5.13,<6"',
            '">=4,<5"',
            "host.version",
            ("transformers>=4,<5", "is installed"),
            id="version",
        ),
    ],
)
def test_a_wrong_binding_is_told_with_both_sides(
    tmp_path: Path, old: str, new: str, code: str, parts: tuple[str, ...]
) -> None:
    dtype = torch.bfloat16 if "norm_rounding" in old else torch.float32
    report = report_of(edited(old, new), tmp_path, tiny.LLAMA.model(dtype))
    assert not report.ok
    text = said(report)
    assert code in {problem.code for problem in report_problems(report)}, text
    assert all(part in text for part in parts), text
    assert all(problem.fix for problem in report_problems(report))
    assert all(problem.what in report.text() for problem in report_problems(report))


def test_every_problem_of_a_seat_is_told(tmp_path: Path) -> None:
    text = edited("up_proj.weight", "up.weight").replace("input of down_proj", "input of down")
    found = report_of(text, tmp_path).seat("ffn[1]").problems
    assert [problem.path for problem in found] == [
        "model.layers.1.mlp.up.weight",
        "model.layers.1.mlp.down",
    ]


def test_a_version_outside_the_range_leaves_the_rest_to_be_looked_at(tmp_path: Path) -> None:
    report = report_of(edited('">=5.13,<6"', '">=4,<5"'), tmp_path)
    assert [problem.code for problem in report.problems] == ["host.version"]
    assert report.seats and all(seat.ok for seat in report.seats)


class Bypass(nn.Module):
    """A layer that computes its MLP's product without calling the MLP's forward."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.__dict__.update(layer.__dict__)

    def forward(self, hidden: torch.Tensor, **_: Any) -> torch.Tensor:
        mlp: Any = self.mlp
        x: Any = self.post_attention_layernorm(hidden)
        product: torch.Tensor = hidden + mlp.down_proj(
            mlp.act_fn(mlp.gate_proj(x)) * mlp.up_proj(x)
        )
        return product


def test_a_module_that_the_host_never_calls_is_an_error(tmp_path: Path) -> None:
    model = tiny.LLAMA.model()
    model.model.layers[0] = Bypass(model.model.layers[0]).eval()
    report = report_of(LLAMA, tmp_path, model)
    codes = {seat.name: [p.code for p in seat.problems] for seat in report.seats}
    assert codes["ffn[0]"] == codes["qkv[0]"] == codes["o[0]"] == ["host.never_called"]
    assert codes["ffn[1]"] == []
    assert "FAIL ffn[0]" in report.text() and "calls 0 0" in report.seat("ffn[0]").line()


def test_a_forward_that_raises_is_a_problem_of_the_host() -> None:
    model = tiny.LLAMA.model()

    def forward() -> None:
        raise ValueError("no tokens")

    report = verify(tiny.LLAMA.generated().HOST, model, forward)
    assert [p.code for p in report.problems] == ["host.forward"]
    assert "ValueError: no tokens" in report.text() and not report.ok


def test_a_spec_with_errors_is_told_as_check_tells_it(tmp_path: Path) -> None:
    (tmp_path / "host.frt").write_text(edited("decoder_ffn.mlp", "decoder_ffn.mpl"))
    with pytest.raises(SpecErrors) as raised:
        bindings_of(tmp_path / "host.frt")
    assert "mpl" in raised.value.diagnostics[0].message


# ---------------------------------------------------------------- the command

FACTORY = """
from hosts import tiny

def llama():
    model = tiny.LLAMA.model()
    return model, lambda sample: model(**sample), tiny.LLAMA.samples(3)

def nothing():
    return None

def broken():
    raise RuntimeError("no weights here")
"""


@pytest.fixture
def factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "factory.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    return "factory.py"


def test_the_command_verifies_the_catalogs_binding(
    factory: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "llama", f"{factory}:llama", "--max-samples", "2"]) == OK
    out = capsys.readouterr().out
    assert out.startswith("llama on LlamaForCausalLM, transformers ")
    seats = sum(tiny.LLAMA.seats.values())
    assert out.endswith(f"{seats} seats verified over 2 samples\n")


def test_the_command_compiles_a_file_and_prints_json(
    factory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.frt").write_text(edited("class (LlamaMLP)", "class (Other)"))
    argv = ["verify", "mine.frt", f"{factory}:llama", "--format", "json"]
    assert main(argv) == FINDINGS
    data = json.loads(capsys.readouterr().out)
    assert (data["ok"], data["binding"], data["samples"]) == (False, "mine", 3)
    row = next(seat for seat in data["seats"] if seat["name"] == "ffn[0]")
    assert row["ok"] is False
    assert row["problems"][0]["what"] == "expected class Other, found LlamaMLP"


@pytest.mark.parametrize(
    ("binding", "target", "parts"),
    [
        ("lama", "factory.py:llama", ("no binding lama", "did you mean `llama`")),
        ("../llama", "factory.py:llama", ("names no binding",)),
        ("no/such.frt", "factory.py:llama", ("no/such.frt",)),
        ("llama", "factory.py:lama", ("factory.py has no lama", "did you mean `llama`")),
        ("llama", "factory.py:nothing", ("returned NoneType", "(model, forward)")),
        ("llama", "factory.py:broken", ("RuntimeError: no weights here", "factory.py:12")),
        ("llama", "nowhere.py:llama", ("no file nowhere.py",)),
        ("llama", "llama", ("MODULE:FUNCTION",)),
        ("llama", "no_such_module:f", ("no_such_module can't be imported",)),
    ],
)
def test_what_can_not_be_used_is_a_usage_error(
    factory: str,
    binding: str,
    target: str,
    parts: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["verify", binding, target]) == USAGE
    printed = capsys.readouterr()
    assert all(part in printed.out + printed.err for part in parts), printed
    assert "Traceback" not in printed.out + printed.err


# ---------------------------------------------------------------- what a seam is handed


def test_what_a_seam_is_handed_is_compared_also_where_it_is_no_point(tmp_path: Path) -> None:
    """A router that weighs its experts in another way hands other weights to them; behind the
    seam nothing would show it, since the reference goes on from what the host gave there."""
    text = (resources.specs_dir() / "bindings" / "qwen3_moe.frt").read_text("utf-8")
    right = "match config.norm_topk_prob { true => normalized, false => plain }"
    assert text.count(right) == 1
    model = tiny.QWEN3_MOE.model(torch.bfloat16)
    (sample,) = tiny.QWEN3_MOE.samples(1)
    said = {}
    for name, weights in (("right", right), ("wrong", right.replace("false => plain", "false => "
                          "normalized").replace("true => normalized", "true => plain"))):  # fmt: skip
        path = tmp_path / f"{name}.frt"
        path.write_text(
            text.replace(right, weights).replace("binding qwen3_moe", f"binding {name}")
        )
        (binding,) = bindings_of(path).values()
        report = verify(binding, model, lambda: model(**sample), structures=["moe_experts"])
        said[name] = [p.what for p in report_problems(report)]
        assert report.seats and all(seat.target.startswith("moe") for seat in report.seats)
    assert said["right"] == []
    assert said["wrong"] and all(
        "route is" in what and "chosen" not in what for what in said["wrong"]
    )
