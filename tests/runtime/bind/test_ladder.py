"""Ladders: which rung is admitted, what falls through and why, what a seat is bound for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.dims import at_least, at_most, between, divides, equal
from frtspec.runtime.errors import Refusal, TrailRow
from frtspec.runtime.gating import metrics
from frtspec.runtime.rungs import kernels, ladder, probe
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.seats.guard import Band
from frtspec.runtime.spec import BandSpec, ImplSpec, Refused, Route, RungSpec, Weight
from tests.runtime.bind.support import attach, bind, rel_l2, run, watch
from tests.runtime.hosts_small import (
    FP8_STATIC,
    D,
    F,
    FfnFp8Static,
    M,
    seat_named,
    tiny_decoder,
    tiny_seats,
    token_batches,
)

HUB = "hub flashrt/flashrt-fp8-swiglu-ffn@v1"
ROUTE = FP8_STATIC.route("decoder_ffn", "mlp")


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("LOCAL_KERNELS", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    kernels.forget()
    yield
    kernels.forget()


def ffn(impl: type[BoundImpl] = FfnFp8Static, **options: Any) -> ladder.BoundSeat:
    model = tiny_decoder()
    seat = seat_named(model, "ffn[0]")
    route = Route(ROUTE.structure, ROUTE.seam, ROUTE.stats, impl)
    return ladder.bind_seat(model, seat, route, watch(model, [seat]), **options)


def variant_of(**spec: Any) -> type[FfnFp8Static]:
    """The FFN impl with another spec."""
    made: ImplSpec = replace(FfnFp8Static.SPEC, **spec)
    return type("Variant", (FfnFp8Static,), {"SPEC": made})


def refused(impl: type[BoundImpl] = FfnFp8Static, **options: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        ffn(impl, **options)
    assert caught.value.seat == "ffn[0]"
    return caught.value


# ---------------------------------------------------------------- choosing


def test_the_first_admitted_rung_serves_and_the_trail_is_whole() -> None:
    bound = ffn()
    assert bound.rung.kind == "torch"
    assert [(row.what, row.code, row.verdict) for row in bound.trail] == [
        (HUB, "kernel.offline", "fell_through"),
        ("torch", "rung.bound", "bound"),
    ]
    assert "probed at 14 rows" in bound.trail[1].reason


def test_emulate_is_never_reached_by_falling_through() -> None:
    impl = variant_of(rungs=FfnFp8Static.SPEC.rungs[0::2])
    found = refused(impl)
    assert found.code == "rung.none"
    assert [(row.what, row.code) for row in found.trail] == [
        (HUB, "kernel.offline"),
        ("emulate", "rung.not_asked"),
    ]
    assert ffn(impl, rungs=("emulate",)).rung.kind == "emulate"


def test_rungs_asked_for_by_name_are_the_only_ones() -> None:
    bound = ffn(rungs=("emulate",))
    assert [row.verdict for row in bound.trail] == ["not_tried", "not_tried", "bound"]
    found = refused(rungs=("hub",))
    assert found.code == "rung.none" and "asked for: hub" in found.what
    assert found.trail[1].code == "rung.not_asked"


@pytest.mark.parametrize("rungs", [("gpu",), "torch"])
def test_unknown_rungs_are_refused(rungs: Any) -> None:
    with pytest.raises(Refusal) as caught:
        ffn(rungs=rungs)
    assert caught.value.code == "option.rungs"
    with pytest.raises(Refusal) as caught:
        ffn(on_guard_fail="ignore")
    assert caught.value.code == "option.on_guard_fail"


def test_a_rung_outside_its_envelope_says_the_rule_and_the_sizes() -> None:
    impl = variant_of(
        rungs=(RungSpec("torch", run="run_torch", envelope=(between(512, D, 4096),)),)
    )
    found = refused(impl)
    assert found.trail[0].code == "rung.envelope"
    assert found.trail[0].reason == "needs 512 <= D <= 4096; D = 32"
    assert found.trail[0].fix


def test_a_hub_rung_runs_a_local_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = hub_bound(tmp_path, monkeypatch, scale=1.0)
    assert bound.rung.kind == "hub"
    assert "local override" in bound.trail[0].reason and "unpinned" in bound.trail[0].reason
    x = torch.randn(2, 3, 32)
    assert rel_l2(bound.call(x), bound.impl.run_emulate(x.reshape(-1, 32)).reshape(2, 3, 32)) < 0.05


def test_a_kernel_that_loads_and_computes_something_else_is_not_admitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = hub_bound(tmp_path, monkeypatch, scale=2.0)
    assert bound.rung.kind == "torch"
    assert bound.trail[0].code == "rung.values" and "worst row" in bound.trail[0].reason


KERNEL = """
import torch
from torch.nn import functional as nnf


def _run(act, x, gate_up, down, in_s, gu_s, hid_s, down_s):
    x_q = (x.float() / in_s).clamp(-448, 448).to(torch.float8_e4m3fn).float() * in_s
    g, u = (x_q @ (gate_up.float() * gu_s).T).to(torch.bfloat16).float().chunk(2, dim=-1)
    h = act(g) * u
    h_q = (h / hid_s).clamp(-448, 448).to(torch.float8_e4m3fn).float() * hid_s
    return (SCALE * (h_q @ (down.float() * down_s).T)).to(torch.bfloat16)


def bf16_fp8_swiglu_mlp_bf16(*args):
    return _run(nnf.silu, *args)


def bf16_fp8_geglu_mlp_bf16(*args):
    return _run(lambda g: nnf.gelu(g, approximate="tanh"), *args)
"""


def hub_bound(folder: Path, monkeypatch: pytest.MonkeyPatch, scale: float) -> ladder.BoundSeat:
    build = folder / "build" / "torch-cpu"
    build.mkdir(parents=True)
    (build / "__init__.py").write_text(f"SCALE = {scale}\n{KERNEL}")
    metadata = {
        "name": "fp8-swiglu-ffn",
        "id": f"_swiglu_{folder.name.replace('-', '_')}_{int(scale)}",
        "version": 1,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": "cpu"},
    }
    (build / "metadata.json").write_text(json.dumps(metadata))
    monkeypatch.setenv("LOCAL_KERNELS", f"flashrt/flashrt-fp8-swiglu-ffn={folder}")
    return ffn()


# ---------------------------------------------------------------- probes


class Probed(FfnFp8Static):
    """Rungs that go wrong in one way each."""

    def run_raises(self, x: Tensor) -> Tensor:
        raise RuntimeError("no algorithm for this shape")

    def run_typo(self, x: Tensor) -> Tensor:
        return self.no_such_weight @ x

    def run_nan(self, x: Tensor) -> Tensor:
        out = self.run_emulate(x)
        out[-1, -1] = float("nan")
        return out

    def run_narrow(self, x: Tensor) -> Tensor:
        return self.run_emulate(x)[:, :-1]

    def run_codes(self, x: Tensor) -> Tensor:
        return self.run_emulate(x).to(torch.int32)

    def run_lost_row(self, x: Tensor) -> Tensor:
        out = self.run_emulate(x)
        out[3] = 0
        return out

    def run_wrong_scale(self, x: Tensor) -> Tensor:
        return self.run_emulate(x) * 1.5


@pytest.mark.parametrize(
    ("run", "code"),
    [
        ("raises", "rung.raised"),
        ("nan", "rung.not_finite"),
        ("narrow", "rung.shape"),
        ("codes", "rung.shape"),
        ("lost_row", "rung.values"),
        ("wrong_scale", "rung.values"),
    ],
)
def test_a_rung_that_fails_its_probe_falls_through(run: str, code: str) -> None:
    rungs = (RungSpec("torch", run=f"run_{run}"), FfnFp8Static.SPEC.rungs[2])
    impl = type("Broken", (Probed,), {"SPEC": replace(FfnFp8Static.SPEC, rungs=rungs)})
    found = refused(impl)
    assert found.code == "rung.none" and found.trail[0].code == code
    if run == "raises":
        assert "no algorithm for this shape" in found.trail[0].reason


def test_a_fault_of_our_own_is_no_refusal() -> None:
    rungs = (RungSpec("torch", run="run_typo"), FfnFp8Static.SPEC.rungs[2])
    impl = type("Broken", (Probed,), {"SPEC": replace(FfnFp8Static.SPEC, rungs=rungs)})
    with pytest.raises(AttributeError):
        ffn(impl)


def test_tolerance_shrinks_with_k_down_to_what_rounding_makes() -> None:
    assert probe.tolerance(256) == 0.125
    assert probe.tolerance(4096) == 0.03125
    assert probe.tolerance(1 << 20) == 2.0**-6
    assert probe.tolerance(16) == 0.25


@pytest.mark.parametrize("k", [128, 576, 1536, 4096])
def test_a_lost_tile_of_k_is_outside_the_tolerance(k: int) -> None:
    x, w = torch.randn(64, k), torch.randn(k, 64)
    lost = x.clone()
    lost[:, :16] = 0
    errors = metrics.row_errors(lost @ w, x @ w)
    assert metrics.row_distance(errors) > probe.tolerance(k)


def test_one_loud_row_does_not_decide_and_a_lost_one_does() -> None:
    wanted = torch.randn(64, 128)
    wanted[5] *= 1e4
    tipped = wanted.clone()
    tipped[5] *= 1.06
    errors = metrics.row_errors(tipped, wanted)
    assert metrics.row_distance(errors) < 2.0**-6 < rel_l2(tipped, wanted)
    assert float(errors.max()) < metrics.ROW
    assert float(metrics.row_errors(torch.zeros(3, 4), torch.zeros(3, 4)).max()) == 0
    lost = torch.ones(8, 16)
    lost[3] = 0
    assert float(metrics.row_errors(lost, torch.ones(8, 16)).max()) > metrics.ROW


def test_a_loud_row_does_not_hide_the_others() -> None:
    wanted = torch.randn(256, 128)
    wanted[5] *= 1e4
    off = wanted * 1.05
    off[5] = wanted[5]
    errors = metrics.row_errors(off, wanted)
    assert rel_l2(off, wanted) < 2.0**-6 < metrics.row_distance(errors)


def test_what_a_rung_lacks_and_what_to_do_about_it_are_in_the_trail() -> None:
    row = TrailRow("hub x", "kernel.offline", "not in the cache", fix="set LOCAL_KERNELS='x=/path'")
    text = str(Refusal("rung.none", "no rung serves", fix="see", trail=(row,)))
    assert "tried hub x: not in the cache [kernel.offline]" in text
    assert "what to do: set LOCAL_KERNELS='x=/path'" in text


def test_probes_run_on_what_the_host_gave_the_seat() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "ffn[0]")
    seen = watch(model, [seat])
    (rows,) = probe.probe_inputs(seat, seen, Band(), torch.device("cpu"))
    assert torch.equal(rows, seen.captured("ffn[0]")[0].seat_inputs[0].reshape(-1, 32))
    (few,) = probe.probe_inputs(seat, seen, Band(1, 4), torch.device("cpu"))
    assert few.shape == (1, 32)
    (stepped,) = probe.probe_inputs(seat, seen, Band(3, None, 16), torch.device("cpu"))
    assert stepped.shape == (16, 32)
    bare = watch(model, [seat], capture=None)
    (made,) = probe.probe_inputs(seat, bare, Band(), torch.device("cpu"))
    assert made.shape == (14, 32) and made.dtype == torch.float32


# ---------------------------------------------------------------- bands and rows


def test_bands_bind_apart_and_other_rows_are_the_hosts() -> None:
    torch_rung, emulate = FfnFp8Static.SPEC.rungs[1], FfnFp8Static.SPEC.rungs[2]
    impl = variant_of(
        rungs=(), bands=(BandSpec("M", 1, 4, (emulate,)), BandSpec("M", 8, 14, (torch_rung,)))
    )
    bound = ffn(impl, rungs=("torch", "emulate"))
    assert [str(form.band) for form in bound.forms.forms] == ["1..=4", "8..=14"]
    assert [form.impl.rung.kind for form in bound.forms.forms] == ["emulate", "torch"]
    assert bound.rung.kind == "emulate"
    checks = {rows: bound.guard.failed((torch.randn(rows, 32),), ()) for rows in (0, 4, 6, 14, 15)}
    with torch.no_grad():
        checks = {r: bound.guard.failed((torch.randn(r, 32),), ()) for r in checks}
    assert [r for r, failed in checks.items() if failed is not None] == [0, 6, 15]
    assert checks[6] is not None and checks[6].check.by_design
    assert "6 rows; bound for 1..=4 and 8..=14" in checks[6].reason


def test_a_band_without_a_rung_stays_the_hosts() -> None:
    hub, torch_rung, _ = FfnFp8Static.SPEC.rungs
    impl = variant_of(
        rungs=(), bands=(BandSpec("M", 1, 4, (hub,)), BandSpec("M", 5, None, (torch_rung,)))
    )
    bound = ffn(impl)
    assert [str(form.band) for form in bound.forms.forms] == ["5.."]
    assert [row.verdict for row in bound.trail] == ["fell_through", "bound"]


def test_rungs_beside_bands_come_behind_those_of_each() -> None:
    hub, torch_rung, emulate = FfnFp8Static.SPEC.rungs
    bands = (BandSpec("M", 1, 4, (hub,)), BandSpec("M", 8, None, (torch_rung,)))
    bound = ffn(variant_of(rungs=(emulate,), bands=bands), rungs=("hub", "torch", "emulate"))
    assert [form.impl.rung.kind for form in bound.forms.forms] == ["emulate", "torch"]
    assert not bound.forms.holds(6)


def test_rules_on_rows_become_the_band() -> None:
    envelope = (at_least(M, 16), at_most(M, 512), divides(4, M), divides(6, M), divides(16, D))
    impl = variant_of(rungs=(RungSpec("torch", run="run_torch", envelope=envelope),))
    (form,) = ffn(impl).forms.forms
    assert form.band == Band(16, 512, 12)
    impl = variant_of(rungs=(RungSpec("torch", run="run_torch", envelope=(between(2, M, D),)),))
    assert ffn(impl).forms.forms[0].band == Band(2, 32)


@pytest.mark.parametrize("rule", [equal(M, D), divides(M, F), at_least(M * D, 64)])
def test_a_rule_on_rows_that_no_call_can_be_asked_is_not_admitted(rule: Any) -> None:
    impl = variant_of(rungs=(RungSpec("torch", run="run_torch", envelope=(rule,)),))
    assert refused(impl).trail[0].code == "rung.envelope"


# ---------------------------------------------------------------- what can't be bound


def test_what_calibration_refused_stays_refused() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "ffn[0]")
    model.layers[0].mlp.down_proj.register_forward_pre_hook(
        lambda _, args: (torch.zeros_like(args[0]),)
    )
    seen = watch(model, [seat])
    with pytest.raises(Refusal) as caught:
        ladder.bind_seat(model, seat, ROUTE, seen)
    assert caught.value.code == "calibration.zero"


def test_a_kept_structure_has_no_form() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "ffn[0]")
    route = Route("decoder_ffn", "mlp", {}, None, "kept by the scheme")
    with pytest.raises(Refusal) as caught:
        ladder.bind_seat(model, seat, route, watch(model, [seat]))
    assert caught.value.code == "scheme.keep" and "kept by the scheme" in caught.value.what


def refused_seat(model: nn.Module, seat: Any, impl: type[BoundImpl] = FfnFp8Static) -> Refusal:
    route = Route(ROUTE.structure, ROUTE.seam, ROUTE.stats, impl)
    with pytest.raises(Refusal) as caught:
        ladder.bind_seat(model, seat, route, watch(model, [seat]), rungs=("emulate",))
    assert caught.value.seat == seat.name
    return caught.value


def test_variants_that_nothing_serves() -> None:
    model = tiny_decoder(hidden_act="relu")
    seat = seat_named(model, "ffn[0]")
    assert isinstance(seat.variants["activation"], Refused)
    found = refused_seat(model, seat)
    assert found.code == "host.variant" and "config.hidden_act is 'relu'" in found.what
    model = tiny_decoder()
    impl = variant_of(only={"activation": ("gelu",)})
    found = refused_seat(model, seat_named(model, "ffn[0]"), impl)
    assert found.code == "impl.variant" and "activation = silu" in found.what


def test_a_dtype_that_the_impl_does_not_admit() -> None:
    model = tiny_decoder()
    impl = variant_of(admits={"x_after_norm": ("bf16",)})
    found = refused_seat(model, seat_named(model, "ffn[0]"), impl)
    assert found.code == "impl.dtype" and "float32" in found.what and "bf16" in found.what


def test_a_module_in_training_mode() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.dropout.train()
    found = refused_seat(model, seat_named(model, "ffn[0]"))
    assert found.code == "host.training" and "dropout" in found.what


def test_a_hook_inside_the_module() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.up_proj.register_forward_hook(lambda module, args, out: out)
    found = refused_seat(model, seat_named(model, "ffn[0]"))
    assert found.code == "host.hooks" and "layers.0.mlp.up_proj" in found.what


def test_a_scale_that_the_scheme_does_not_measure() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "ffn[0]")
    stats = {"x_after_norm": ROUTE.stats["x_after_norm"]}
    partial = replace(FP8_STATIC, routes=(replace(ROUTE, stats=stats),))
    with pytest.raises(Refusal) as caught:
        bind(model, seats=[seat], scheme=partial)
    assert caught.value.code == "calibration.not_measured"
    assert "act_after_mul" in caught.value.what


def test_a_module_that_serves_at_two_places() -> None:
    model = tiny_decoder()
    model.layers[1].mlp = model.layers[0].mlp
    found = refused_seat(model, replace(seat_named(model, "ffn[0]"), boundary=None))
    assert found.code == "host.shared_module"
    assert "layers.0.mlp and layers.1.mlp" in found.what


def test_a_place_that_holds_a_seat_already() -> None:
    model = tiny_decoder()
    attach(model, ["ffn[0]"])
    seat = replace(seat_named(model, "ffn[0]"), expects=())
    found = refused_seat(model, seat)
    assert found.code == "host.attached"


def test_a_module_that_returns_a_tuple() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.register_forward_hook(lambda _, args, out: out)
    seat = replace(
        seat_named(model, "ffn[0]"), path="layers.0.self_attn", boundary=None, expects=()
    )
    found = refused_seat(model, seat)
    assert found.code == "host.returns" and "tuple" in found.what


def test_a_module_that_is_given_more_than_the_structure_takes() -> None:
    model = tiny_decoder()
    inner = model.layers[0].mlp.forward
    model.layers[0].mlp.register_forward_pre_hook(
        lambda _, args, kwargs: (args, {"gain": 2.0}), with_kwargs=True
    )
    assert inner is not None
    found = refused_seat(model, seat_named(model, "ffn[0]"))
    assert found.code == "host.arguments" and "gain" in found.what


@pytest.mark.parametrize("form", ["route", "update"])
def test_a_form_that_has_no_runtime(form: str) -> None:
    model = tiny_decoder()
    found = refused_seat(model, replace(seat_named(model, "ffn[0]"), form=form))
    assert found.code == "seat.form" and form in found.what


# ---------------------------------------------------------------- what a bound seat is


def test_binding_changes_nothing_on_the_host() -> None:
    model = tiny_decoder()
    modules = {name: module for name, module in model.named_modules()}
    state = {name: (value.data_ptr(), value._version) for name, value in model.named_parameters()}
    keys = {name: list(module.__dict__) for name, module in model.named_modules()}
    bound = bind(model)
    assert {name: module for name, module in model.named_modules()} == modules
    assert {n: (v.data_ptr(), v._version) for n, v in model.named_parameters()} == state
    assert {name: list(module.__dict__) for name, module in model.named_modules()} == keys
    assert all(not p.requires_grad for seat in bound for p in seat.impl.buffers())


def test_bytes_are_those_of_the_packs() -> None:
    bound = ffn(rungs=("emulate",))
    packs = 2 * 64 * 32 + 32 * 64
    assert bound.bytes_added == packs + 4 * 4


def test_scales_are_amax_over_448_and_shared_where_said() -> None:
    model = tiny_decoder()
    seen = watch(model)
    (bound,) = bind(model, ["ffn[0]"], seen=seen)
    assert float(bound.impl.in_s) == pytest.approx(seen.amax("ffn[0]", "x_after_norm") / 448)
    layer = model.layers[0].mlp
    peak = torch.cat([layer.gate_proj.weight, layer.up_proj.weight]).detach().abs().max()
    assert float(bound.impl.gate_up_scale) == pytest.approx(float(peak) / 448)


def test_every_seat_binds_on_every_cpu_rung() -> None:
    model = tiny_decoder()
    for rungs in (("emulate",), ("torch",), None):
        bound = bind(model, rungs=rungs)
        assert [b.seat.name for b in bound] == [s.name for s in tiny_seats(model)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_calls_return_what_the_host_returns(dtype: torch.dtype) -> None:
    model = tiny_decoder().to(dtype)
    for bound in bind(model):
        host = next(iter(bound.modules.values()))._frt.host
        for lead in ((), (3,), (2, 3), (2, 1, 3)):
            x = (torch.randn(*lead, 32) / 3).to(dtype)
            with torch.no_grad():
                theirs, ours = host(x), bound.call(x)
            ours = ours[0] if isinstance(ours, tuple) else ours
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
            assert ours.is_contiguous()
            assert rel_l2(ours, theirs) < 0.15


def test_gelu_hosts_bind_the_gelu_form() -> None:
    model = tiny_decoder(hidden_act="gelu_pytorch_tanh")
    before = run(model)
    attach(model, ["ffn[0]", "ffn[1]"])
    assert rel_l2(run(model), before) < 0.1


def test_an_optional_bias_is_packed_where_the_host_has_one() -> None:
    model = tiny_decoder()
    o_proj = model.layers[0].self_attn.o_proj
    o_proj.bias = nn.Parameter(torch.randn(32))
    seat = seat_named(model, "o[0]")
    slots = {**seat.slots, "b": Weight(f"{seat.path}.bias")}
    seat = replace(seat, slots=slots, expects=(), variants={"bias": "add"})
    (bound,) = bind(model, seats=[seat])
    x = torch.randn(5, 32)
    with torch.no_grad():
        assert rel_l2(bound.call(x), o_proj(x)) < 0.1


def test_token_batches_of_other_lengths_run_the_bound_form() -> None:
    model = tiny_decoder()
    attachment = attach(model)
    for length in (1, 5, 19):
        run(model, token_batches(1, length=length)[0])
    assert all(ledger.clean for ledger in attachment.ledger().values())
