"""A live model that nobody generated for: scanned, compiled in memory, attached."""

from __future__ import annotations

import itertools
from functools import cache

import jsonschema
import pytest
import torch
from flashrt_gen import llama
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from frtspec.live import attach as live
from frtspec.live.inmemory import bindings_of
from frtspec.runtime import Refusal, receipt
from tests.runtime import hosts_small as small

IDS = torch.zeros(1, 2, dtype=torch.long)
CHOSEN = {"scheme": "fp8_static", "latency": "skip", "rungs": ("emulate",)}
SHARED = ("decoder_ffn", "qkv_pack")
BATCHES = [
    torch.randint(0, 128, (2, 12), generator=torch.Generator().manual_seed(n)) for n in (1, 2, 3)
]


@cache
def host() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval()


def run(ids):
    with torch.no_grad():
        return host()(input_ids=ids, use_cache=False)


@cache
def attached():
    """(what the attached host gives, its plan), detached again."""
    with live.attach(host(), run, observations=iter(BATCHES), structures=SHARED, **CHOSEN) as plan:
        return run(BATCHES[0]).logits, plan


def test_it_gives_what_the_generated_package_gives() -> None:
    with llama.attach(host(), run, observations=BATCHES, structures=SHARED, **CHOSEN) as plan:
        theirs = run(BATCHES[0]).logits
    ours, mine = attached()
    assert torch.equal(ours, theirs)
    assert not torch.equal(ours, run(BATCHES[0]).logits)
    places = [
        {(r.seat.target, r.seat.path) for r in p.seats if r.state == "bound"} for p in (plan, mine)
    ]
    assert places[0] == places[1] and len(places[0]) == 4


def test_the_sample_that_the_scan_ran_on_is_calibrated_on_too() -> None:
    assert attached()[1].calibration.samples == len(BATCHES)


def test_the_receipt_and_the_file_hold_the_binding_that_was_used(tmp_path) -> None:
    _, plan = attached()
    assert receipt.verify(plan.receipt)
    jsonschema.validate(plan.receipt, receipt.schema())
    saved = plan.save_binding(tmp_path / "llama_scanned.frt")
    assert saved.read_text() == plan.receipt["plan"]["host"]["text"] == plan.binding.text
    (again,) = bindings_of(saved).values()
    assert again.contract_digest == plan.binding.contract_digest
    assert [p.name for p in tmp_path.iterdir() if p.suffix == ".frt"] == [saved.name]


def test_the_binding_of_a_package_is_not_saved(tmp_path) -> None:
    with llama.build(host(), lambda: run(BATCHES[0]), scheme="none") as plan:
        pass
    assert plan.receipt["plan"]["host"]["text"] is None
    with pytest.raises(Refusal, match="is of a generated package") as caught:
        plan.save_binding(tmp_path / "x.frt")
    assert caught.value.code == "plan.binding" and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("forward", "options", "samples"),
    [
        (lambda: run(BATCHES[0]), {}, 1),
        ([lambda: run(BATCHES[0]), lambda: run(BATCHES[1])], {}, 2),
        (run, {"observations": itertools.cycle(BATCHES), "max_samples": 2}, 2),
    ],
    ids=["a callable", "thunks", "an endless stream"],
)
def test_samples_come_in_every_way(forward, options, samples) -> None:
    with live.build(host(), forward, structures=SHARED, **CHOSEN_BUILD, **options) as plan:
        assert plan.calibration.samples == samples and plan.bound


CHOSEN_BUILD = {"scheme": "fp8_static", "rungs": ("emulate",)}


def test_a_class_of_no_distribution_is_attached_too() -> None:
    model = small.tiny_decoder()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    batch = small.token_batches(1)[0]
    with live.attach(model, lambda: model(batch), **CHOSEN) as plan:
        assert {r.seat.structure.name for r in plan.seats if r.state == "bound"} >= {
            "decoder_ffn",
            "qkv_pack",
        }
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


class Nothing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 4)

    def forward(self, ids):
        return self.table(ids)


@pytest.mark.parametrize(
    ("model", "options", "code"),
    [
        (small.tiny_decoder().train(), {}, "host.training"),
        (Nothing().eval(), {}, "scan.nothing"),
        (Nothing().eval(), {"floor": {}}, "option.unknown"),
        (Nothing().eval(), {"observations": []}, "samples.empty"),
        (Nothing().eval(), {"observations": torch.zeros(2)}, "option.observations"),
    ],
)
def test_what_cannot_be_is_refused(model, options, code) -> None:
    with pytest.raises(Refusal) as caught:
        live.attach(model, lambda ids=IDS: model(ids), **options)
    assert caught.value.code == code
