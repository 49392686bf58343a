"""The form in which the host is judged, and the host's own noise."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from frtspec import runtime as rt
from frtspec.runtime.gating import arms, outputs, reorder
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.runtime import hosts_small as small


def attach(model, forward=None, **options):
    options = {"scheme": "fp8_static", "rungs": ("torch",), **options}
    options.setdefault("observations", small.token_batches(2))
    return rt.attach(small.BINDING, model, forward or model, structures=("decoder_ffn",), **options)


@pytest.fixture
def aot_eager(monkeypatch):
    """torch.compile without a C++ compiler's time; counts what is compiled."""
    real, made = torch.compile, []

    def compile(function, **options):
        made.append(function)
        return real(function, backend="aot_eager", **options)

    monkeypatch.setattr(arms.torch, "compile", compile)
    yield made
    torch._dynamo.reset()


def test_the_compiled_form_compiles_both_sides_and_the_receipt_says_so(aot_eager):
    model = small.tiny_decoder()
    plan = attach(model, form="compiled")
    plan.detach()
    assert plan.bound and len(aot_eager) == 2, "the host's side and the attached one"
    assert aot_eager[0].__code__ is not aot_eager[1].__code__
    (unit,) = plan.receipt["metrics"]["units"]
    assert unit["latency"]["form"] == plan.receipt["plan"]["options"]["form"] == "compiled"
    assert any(note.startswith("judged compiled") for note in unit["host"]["notes"])
    assert [v.what for v in plan.noise.variations][-1] == "run compiled"


def test_what_is_right_in_eager_and_wrong_compiled_is_refused(aot_eager):
    model = small.tiny_decoder()

    def forward(ids):
        output = model(ids)
        attached = any(isinstance(layer.mlp, SeatModule) for layer in model.layers)
        return -output if torch.compiler.is_compiling() and attached else output

    with pytest.warns(rt.NothingBoundWarning):
        plan = attach(model, forward, form="compiled", floors={"cosine": 0.9})
    assert not plan.bound and plan.unit("decoder_ffn").host.verdict == "fail"
    assert "eager: pass" in " ".join(plan.unit("decoder_ffn").host.notes)


def test_a_host_that_does_not_compile_is_refused_with_the_compilers_own_words(monkeypatch):
    def compile(function, **options):
        raise RuntimeError("no backend here")

    monkeypatch.setattr(arms.torch, "compile", compile)
    with pytest.raises(rt.Refusal) as refused:
        attach(small.tiny_decoder(), form="compiled")
    assert refused.value.code == "form.compiled" and "no backend here" in str(refused.value)


def test_a_capture_on_a_cpu_is_refused_by_name_before_anything_runs():
    with pytest.raises(rt.Refusal) as refused:
        attach(small.tiny_decoder(), lambda ids: pytest.fail("ran"), form="captured")
    assert refused.value.code == "option.form" and "CUDA graph" in str(refused.value)


def _reads_a_value():
    raise ValueError("operation not permitted when stream is capturing")


def test_what_broke_a_capture_is_told_and_not_that_it_was_broken():
    """Ending the capture raises a second error, of the kind that a lost device gives."""

    class Broken(arms.Runner):
        def _replay(self, thunk):
            try:
                thunk()
            finally:
                raise RuntimeError("CUDA error: operation failed due to a previous error")

    runner = Broken("eager", torch.device("cpu"))
    runner.form = "captured"
    usable, arms._usable = arms._usable, lambda device: True
    try:
        with pytest.raises(rt.Refusal) as refused:
            runner(_reads_a_value)
        arms._usable = lambda device: False
        with pytest.raises(RuntimeError, match="CUDA error"):
            runner(_reads_a_value)
    finally:
        arms._usable = usable
    assert refused.value.code == "form.captured"
    assert "not permitted when stream is capturing" in refused.value.what
    assert "in _reads_a_value, test_arms.py:" in refused.value.what


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a capture is of CUDA")
def test_a_capture_replays_and_one_that_breaks_leaves_the_device():
    device = torch.device("cuda")
    model, x = torch.nn.Linear(64, 64).to(device), torch.randn(4, 64, device=device)
    runner = arms.Runner("captured", device)
    run = partial(model, x)
    with torch.no_grad():
        for _ in range(2):
            x.normal_()
            assert torch.allclose(runner(run), model(x), atol=1e-5)
    assert len(runner._graphs) == 1
    broken = arms.Runner("captured", device)
    with pytest.raises(rt.Refusal, match="capturing"):
        broken(lambda: model(x) if model(x).max().item() > 3 else x)
    assert bool(model(x).isfinite().all())


# ---------------------------------------------------------------- noise


def noise(forward):
    return outputs.noise_of(outputs.Untouched(), forward)


def test_a_host_of_products_moves_when_its_sums_run_in_another_order():
    torch.manual_seed(0)
    x, w = torch.randn(8, 512), torch.randn(512, 64)
    found = noise(lambda: x @ w)
    (variation,) = found.variations
    assert found.bit_equal and variation.metrics["rel_l2"] > 0
    assert variation.metrics["rel_l2"] < 1e-5 and "(1 products)" in variation.what
    assert found.floor("cosine") == variation.metrics


@pytest.mark.parametrize("inference", [False, True])
def test_every_kind_of_product_is_reversed_and_stays_the_same_product(inference):
    torch.manual_seed(0)
    x, w, b = torch.randn(2, 4, 6), torch.randn(5, 6), torch.randn(5)
    y = torch.randn(2, 6, 3)
    calls = [
        lambda: torch.nn.functional.linear(x, w, b),
        lambda: torch.nn.functional.linear(x, w),
        lambda: x[0] @ w.T,
        lambda: torch.bmm(x, y),
        lambda: torch.baddbmm(torch.ones(2, 4, 3), x, y),
        lambda: torch.addmm(b, x[0], w.T),
    ]
    for call in calls:
        with torch.inference_mode(inference), reorder.ReversedSums() as products:
            found = call()
        assert products.count == 1 and torch.allclose(found, call(), atol=1e-5)


def test_a_host_without_products_says_so():
    (variation,) = noise(lambda: torch.ones(3)).variations
    assert variation.metrics is None and variation.broken == "the host showed no matrix product"


def test_a_host_that_breaks_its_promise_of_the_same_bits_is_refused(monkeypatch):
    state = iter(range(9))

    def forward():
        return torch.ones(64) + 1e-6 * next(state)

    assert not noise(forward).bit_equal
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    with pytest.raises(rt.Refusal) as refused:
        noise(forward)
    assert refused.value.code == "host.unrepeatable" and "deterministic" in str(refused.value)


# ---------------------------------------------------------------- output=, output_kind=


def test_output_is_taken_on_both_sides_and_its_kind_can_be_said():
    model = small.tiny_decoder()

    def forward(ids):
        return {"extra": torch.full((1,), float("nan")), "scores": model(ids)}

    plan = attach(
        model, forward, output=lambda out: out["scores"], output_kind="distribution", latency="skip"
    )
    plan.detach()
    assert plan.bound and plan.output_kind == "distribution"
    assert "top1_agreement" in plan.unit("decoder_ffn").host.metrics
    with pytest.raises(rt.Refusal) as refused:
        attach(model, forward, latency="skip")
    assert refused.value.code == "host.nonfinite"
    with pytest.raises(rt.Refusal) as refused:
        attach(model, forward, output_kind="distribution")
    assert refused.value.code == "host.output" and "one tensor of logits" in refused.value.fix
