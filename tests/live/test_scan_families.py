"""The scan on every family that has a hand-written binding: it finds at least as much."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import flashrt_gen
import pytest
import torch
import transformers
from torch import nn

from frtspec.diag.source import SourceFile
from frtspec.live.inmemory import bindings_of
from frtspec.live.scan import ScanResult, core, scan
from frtspec.live.verify import verify
from frtspec.runtime import attach
from frtspec.runtime.spec import HostBinding, Seat
from frtspec.syntax.fmt import format_source
from tests.live.scan_hosts import HOSTS, TEXT, qwen3_moe

FAMILIES = pytest.mark.parametrize("name", HOSTS)

BOUND = {module.name for module in pkgutil.iter_modules(flashrt_gen.__path__)}


@cache
def scanned(name: str) -> tuple[nn.Module, Callable[[], Any], ScanResult]:
    model, forward = HOSTS[name]()
    return model, forward, scan(model, forward)


@cache
def compiled() -> dict[str, HostBinding]:
    """Every draft by host, compiled from one file; raises with every finding of it."""
    drafts = {name: scanned(name)[2].binding for name in HOSTS}
    named = {
        name: re.sub(r"(?m)^binding \w+", f"binding {name}_draft", drafts[name]) for name in drafts
    }
    with TemporaryDirectory() as folder:
        path = Path(folder, "drafts.frt")
        path.write_text(
            "frt 1\n" + "".join(text.partition("frt 1\n")[2] for text in named.values())
        )
        found = bindings_of(path)
    return {name: found[f"{name}_draft"] for name in HOSTS}


def wanted(name: str, model: nn.Module) -> list[Seat]:
    """The seats of the hand-written binding."""
    if name not in BOUND:
        return []
    binding = importlib.import_module(f"flashrt_gen.{name}").HOST
    return list(binding.seats(model))


def key(seat: Seat) -> tuple[object, ...]:
    members = seat.siblings.members if seat.siblings else ()
    return seat.structure.name, seat.seam, seat.path, seat.form, members


@FAMILIES
def test_it_finds_what_the_binding_names(name: str) -> None:
    model, _, found = scanned(name)
    here = {key(seat.seat("s")): seat for seat in found.seats}
    missed = [key(seat) for seat in wanted(name, model) if key(seat) not in here]
    assert missed == [], found.explain()


@FAMILIES
def test_it_says_the_same_of_each(name: str) -> None:
    """Weights, sizes, and the variants that the module shows."""
    model, _, found = scanned(name)
    here = {key(seat.seat("s")): seat for seat in found.seats}
    for seat in wanted(name, model):
        mine = here[key(seat)].seat("s")
        if mine.structure.version != seat.structure.version:
            continue
        theirs = {slot: w for slot, w in seat.slots.items() if slot in mine.slots}
        assert dict(mine.slots) == theirs, seat.name
        assert {d: v for d, v in mine.dims.items() if d in seat.dims} == dict(seat.dims), seat.name
        inner = seat.structure.seams[seat.seam].variants if seat.seam else seat.variants
        told = [a for a in inner if "in this run" not in here[key(seat)].why.get(a, "")]
        assert {a: mine.variants[a] for a in told} == {a: seat.variants[a] for a in told}


@FAMILIES
def test_the_draft_is_right_and_formatted(name: str) -> None:
    model, _, found = scanned(name)
    binding = compiled()[name]
    assert format_source(SourceFile.from_text("draft.frt", found.binding)).text == found.binding
    assert {key(s) for s in binding.seats(model)} == {key(s.seat("s")) for s in found.seats}


@FAMILIES
def test_verify_accepts_the_draft(name: str) -> None:
    model, forward, _ = scanned(name)
    report = verify(compiled()[name], model, forward)
    assert report.ok, report.text()


@FAMILIES
def test_coverage_counts_nothing_twice(name: str) -> None:
    coverage = scanned(name)[2].coverage
    assert 0 < coverage.parameters_seated <= coverage.parameters
    assert 0 < coverage.flops_seated <= coverage.flops


@FAMILIES
def test_every_module_is_seated_or_left_out_with_a_reason(name: str) -> None:
    model, _, found = scanned(name)
    claimed = {path for seat in found.seats for path in seat.claims}
    reasons = found.reasons()
    for path, module in model.named_modules():
        own = [f"{path}.{name}" for name, p in module._parameters.items() if p is not None]
        if own and not isinstance(module, nn.Embedding):
            assert set(own) <= claimed or path in reasons, path


@FAMILIES
def test_it_changes_nothing(name: str) -> None:
    model, forward = HOSTS[name]()
    with torch.no_grad():
        before = forward()[0]
    state = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    scan(model, forward)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with torch.no_grad():
        assert torch.equal(forward()[0], before)
    assert all(torch.equal(model.state_dict()[key], state[key]) for key in state)


@FAMILIES
def test_without_a_run_it_says_what_is_not_proven(name: str) -> None:
    model, _, found = scanned(name)
    alone = scan(model)
    assert not alone.proven
    assert "no run was given" in alone.explain()
    here = {(seat.target, seat.path) for seat in alone.seats}
    # Only a run shows who shares an input, and what each of several arguments is.
    alike = [seat for seat in found.seats if seat.form == "swap"]
    missed = {(seat.target, seat.path) for seat in alike} - here
    assert {t for t, _ in missed} <= {"linear_proj", "adaln_producer", "moe_experts.experts"}


def test_a_run_in_bfloat16_tells_where_the_host_rounds() -> None:
    model, forward = HOSTS["qwen3"]()
    found = scan(model.to(torch.bfloat16), forward)
    rope = [seat for seat in found.seats if seat.structure.name == "qk_norm_rope"]
    assert {seat.variants["rope_dtype"] for seat in rope} == {"host"}
    rope = [seat for seat in scanned("qwen3")[2].seats if seat.structure.name == "qk_norm_rope"]
    assert all("compute the same in this run" in seat.why["rope_dtype"] for seat in rope)


@pytest.mark.parametrize("normalized", [True, False])
def test_how_a_router_weighs_its_experts_is_told_by_numbers(normalized: bool) -> None:
    model, forward = qwen3_moe(norm_topk_prob=normalized)
    experts = [s for s in scan(model, forward).seats if s.target == "moe_experts.experts"]
    assert len(experts) == 2
    assert {seat.variants["weights"] for seat in experts} == {
        "normalized" if normalized else "plain"
    }


def test_layers_that_the_config_names_are_found_by_it() -> None:
    text = scanned("qwen3_5")[2].binding
    assert 'where config.layer_types[i] == "linear_attention" {' in text
    assert 'where config.layer_types[i] == "full_attention" {' in text


def test_sizes_that_coincide_are_told_apart_by_a_host_of_other_sizes() -> None:
    """In the tiny Qwen3 the keys are as wide as the model, and the queries as the vocabulary."""
    text = scanned("qwen3")[2].binding
    assert "N[1] = key_value_heads_by_head_dim" in text
    assert "dims { K = hidden_size, N = vocab_size }" in text


def test_layers_that_are_alike_are_proven_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan of many layers costs little more than one of few."""
    proofs: list[str] = []
    prove = core.prove
    monkeypatch.setattr(
        core, "prove", lambda tree, path, *a: proofs.append(path) or prove(tree, path, *a)
    )
    counts = []
    for layers in (2, 9):
        config = transformers.LlamaConfig(**{**TEXT, "num_hidden_layers": layers})
        proofs.clear()
        found = scan(transformers.LlamaForCausalLM(config).eval())
        assert sum(seat.target == "decoder_ffn.mlp" for seat in found.seats) == layers
        counts.append(len(proofs))
    assert counts[0] == counts[1]


@FAMILIES
def test_the_draft_attaches(name: str) -> None:
    """Generated from the draft, the binding binds seats, and gives the host back as it was."""
    model, forward = HOSTS[name]()
    with torch.no_grad():
        before = forward()[0]
    plan = attach(
        compiled()[name], model, forward, scheme="fp8_static", rungs=("emulate",), latency="skip"
    )
    assert plan.bound
    assert not [s for s in plan.seats if s.code.startswith("host.") or s.state == "failed"]
    plan.detach()
    with torch.no_grad():
        assert torch.equal(forward()[0], before)
