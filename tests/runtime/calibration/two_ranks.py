"""One rank of two: ``python -m tests.runtime.calibration.two_ranks RANK FOLDER``.

Runs every case below in order and writes what came of each to ``FOLDER/RANK.json``.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed

from frtspec import runtime as rt
from frtspec.runtime.gating import perseat
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.runtime import hosts_small as small
from tests.runtime.calibration.support import BATCHES, EVERY, attach, build, scales, with_stats


def mine(rank):
    """Three samples on rank 0, one on rank 1."""
    return BATCHES[:3] if rank == 0 else BATCHES[3:]


def case_united(rank, model, **options):
    """What both measured; also by a percentile in between."""
    plan = build(model, mine(rank), with_stats(*EVERY), group="world", **options)
    return {"plan": plan, "scales": {"/".join(k): v for k, v in scales(plan).items()}}


def case_percentile(rank, model):
    return case_united(rank, model, percentile=60.0)


def case_never_called(rank, model):
    """Rank 1's traffic never reaches the second layer."""

    def first_layer(ids):
        return model.layers[0](model.embed_tokens(ids), attention_mask=None)

    forward = model if rank == 0 else first_layer
    plan = rt.build(
        small.BINDING,
        model,
        forward,
        observations=mine(rank),
        scheme="fp8_static",
        rungs=("emulate",),
        group="world",
    )
    return {"plan": plan}


def case_other_weights(rank, model):
    if rank == 1:
        model.layers[1].mlp.down_proj.weight.data[0, 0] += 1
    return {"plan": build(model, mine(rank), group="world")}


def case_other_options(rank, model):
    return {"plan": build(model, mine(rank), group="world", percentile=99.0 + rank)}


def case_fault(rank, model):
    """Rank 1's second sample raises."""

    def forward(ids):
        if rank == 1:
            raise ValueError("a broken loader")
        return model(ids)

    return {
        "plan": rt.attach(
            small.BINDING, model, forward, observations=mine(rank), latency="skip",
            scheme="fp8_static", rungs=("emulate",), group="world",
        )
    }  # fmt: skip


def case_gate(rank, model):
    """A gate of rank 1 refuses one seat."""
    judge = perseat.judge_seats

    def refusing(session):
        judge(session)
        if rank == 1:
            record = next(r for r in session.records if r.name == "ffn[0]")
            record.refuse(rt.Refusal("gate.boundary", "cosine 0.5", fix="none", seat="ffn[0]"))

    perseat.judge_seats = refusing
    try:
        return {"plan": attach(model, mine(rank), group="world")}
    finally:
        perseat.judge_seats = judge


def case_one_has_a_file(rank, model):
    """Rank 0 was handed a calibration, rank 1 was not: both measure."""
    given = build(small.tiny_decoder(), BATCHES).calibration if rank == 0 else None
    return {"plan": build(model, mine(rank), group="world", calibration=given)}


def case_activation(rank, model):
    """Rank 1 fails on the last step, when rank 0 has activated."""
    from frtspec.runtime.seats import swap

    activate = swap.activate

    def failing(*args):
        raise KeyboardInterrupt

    swap.activate = failing if rank == 1 else activate
    try:
        return {"plan": build(model, mine(rank), group="world")}
    finally:
        swap.activate = activate


def outcome(case, rank):
    model = small.tiny_decoder()
    try:
        found = case(rank, model)
    except rt.Refusal as refusal:
        found = {"code": refusal.code, "what": refusal.what}
    except BaseException as error:  # noqa: BLE001 - written down, whatever it is
        found = {"code": type(error).__name__, "what": str(error)}
    plan = found.pop("plan", None)
    seats = sum(isinstance(module, SeatModule) for module in model.modules())
    found |= {"seat_modules": seats}
    if plan is not None:
        record = plan.calibration
        found |= {
            "bound": list(plan.bound),
            "seats": {r.name: [r.state, r.code, r.reason] for r in plan.seats},
            "calibration": [record.samples, record.runs, record.origin, record.digest],
        }
    return found


def main(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=60),
    )
    cases = {name: case for name, case in globals().items() if name.startswith("case_")}
    found = {name.removeprefix("case_"): outcome(case, rank) for name, case in cases.items()}
    (folder / f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(int(sys.argv[1]), Path(sys.argv[2]))
