"""``frtspec demo``: a real language model on this machine, attached, judged, detached."""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frtspec.cli.common import FINDINGS, OK, USAGE, progress
from frtspec.live import data

if TYPE_CHECKING:
    from torch import Tensor

    from frtspec.live.language import Figures, Host
    from frtspec.live.smollm import Loaded
    from frtspec.runtime import Plan, SeatRecord

PROMPT = "The capital of France is Paris. The capital of Italy is"
TOKENS = 20
"""Tokens that are generated attached and detached."""

LENGTH = 256
SAMPLES, SAMPLES_FULL = 4, 8
"""Sequences of LENGTH tokens to calibrate on, and as many to judge on."""

ASKED = {"scheme": "fp8_static", "structures": ("decoder_ffn",), "rungs": ("emulate",)}
"""Options of every attachment here: static FP8 on the MLPs, its arithmetic emulated."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the demo; 0 when the host came back bit for bit, 2 when something is missing."""
    options = _parser().parse_args(argv)
    # Read when torch and tqdm are imported. The bar of transformers' GGUF reader has no other
    # switch; threads that spin while they wait make a busy machine several times slower.
    os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        return _run(options)
    except data.MissingData as missing:
        print(f"frtspec demo: {missing.what}\n   help: {missing.fix}")
        return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="frtspec demo",
        description="Attach static FP8 to the MLPs of SmolLM2-135M-Instruct, with its real"
        " weights and real text, on this machine's CPU. Quantised arithmetic is emulated, so"
        " the demo shows accuracy, not speed.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="twice the text, and also what happens without gates, in bfloat16, and after a"
        " calibration that never saw the start of a sequence (several minutes)",
    )
    parser.add_argument(
        "--report", action="store_true", help="print every figure that a gate measured"
    )
    parser.add_argument(
        "--receipt", metavar="FILE", type=Path, help="write the attachment's receipt here"
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    began = time.monotonic()
    demo = _prepare(SAMPLES_FULL if options.full else SAMPLES)
    if options.full:
        _ungated(demo)
    plan = _attach(demo)
    if options.report:
        print(f"\n{plan.report()}")
    if options.receipt:
        print(f"\nreceipt      {plan.save_receipt(options.receipt)}")
    same = _attached_and_detached(demo, plan)
    if options.full:
        _classic_mistake(demo)
    print(f"\n{time.monotonic() - began:.0f} s in all")
    return OK if same and plan.bound else FINDINGS


# ---------------------------------------------------------------- model and text


@dataclass(frozen=True)
class Demo:
    """The loaded model, the text, and what the untouched host makes of it."""

    loaded: Loaded
    host: Host
    llama: Any
    calibration: Tensor
    held_out: Tensor

    @cached_property
    def reference(self) -> list[Tensor]:
        """Logits of the untouched host on the held-out text; first asked for before attaching."""
        return list(self.host.logits(self.held_out))

    def figures(self) -> Figures:
        """The model as it is now against the untouched host."""
        from frtspec.live.language import figures

        return figures(self.reference, self.host.logits(self.held_out), self.held_out)


def _prepare(samples: int) -> Demo:
    with progress() as say:
        say("importing torch and transformers")
        data.require("torch", "transformers")
        llama = _generated()
        from frtspec.live import smollm, text
        from frtspec.live.language import Host

        loaded = smollm.load(say)
        size = {"count": samples, "length": LENGTH}
        calibration = text.sequences(loaded.tokenizer, text.CALIBRATION, **size)
        held_out = text.sequences(loaded.tokenizer, text.HELD_OUT, **size)
        demo = Demo(loaded, Host(loaded.model), llama, calibration, held_out)
        say("running the untouched model on the held-out text")
        _ = demo.reference
    config = loaded.model.config
    weights = sum(parameter.numel() for parameter in loaded.model.parameters())
    converted = "converted now" if loaded.converted_now else "converted before"
    sizes = f"{samples} x {LENGTH} tokens each"
    print(f"model        {smollm.NAME}, {weights / 1e6:.1f}M parameters, float32 on the CPU")
    print(f"             {config.num_hidden_layers} layers, {loaded.weights.name} ({converted})")
    print(f"             cache: {loaded.cache}")
    print(f"text         news items: {_articles(text.CALIBRATION)} to calibrate,")
    print(f"             {_articles(text.HELD_OUT)} held out, {sizes}")
    print(f"generated    {llama.__name__} ({llama.__file__})")
    return demo


def _articles(which: range) -> str:
    return f"articles {which.start} to {which.stop - 1}"


def _generated() -> Any:
    """The package that ``frtspec gen bindings/llama.frt`` writes."""
    try:
        from flashrt_gen import llama
    except ImportError as error:
        raise data.MissingData(
            f"the generated package can't be imported ({error})",
            "run `frtspec gen bindings/llama.frt`, then again with the folder generated/"
            " on PYTHONPATH unless frtspec is installed",
        ) from error
    return llama


# ---------------------------------------------------------------- attached


def _attach(demo: Demo) -> Plan:
    with progress() as say:
        say("attaching: calibration, then the gates")
        plan: Plan = demo.llama.attach(
            demo.host.model,
            demo.host.forward,
            observations=list(demo.calibration),
            held_out=list(demo.held_out),
            **ASKED,
        )
    print(f"\n{plan.explain().rstrip()}")
    return plan


def _attached_and_detached(demo: Demo, plan: Plan) -> bool:
    """Figures and tokens while attached, then the host's own again; whether it is the same."""
    prompt = _prompt(demo)
    with progress() as say:
        say("running the attached model on the held-out text")
        found = demo.figures()
        say(f"generating {TOKENS} tokens attached")
        attached = demo.host.generate(prompt, TOKENS)
    ledgers = plan.ledger().values()
    calls, fallbacks = (sum(getattr(one, n) for one in ledgers) for n in ("calls", "fallbacks"))
    plan.detach()
    with progress() as say:
        say(f"generating {TOKENS} tokens detached")
        detached = demo.host.generate(prompt, TOKENS)
        say("running the detached model on the held-out text")
        after = _digest(demo.host.logits(demo.held_out))
    before = _digest(demo.reference)
    print("\nheld-out text, attached against untouched")
    _table([(f"attach, {len(plan.bound)} of {len(plan.seats)} seats bound", found)])
    print(f"\nprompt       {PROMPT}")
    print(f"attached     {_decode(demo, attached)}")
    print(f"detached     {_decode(demo, detached)}")
    print(f"             {int((attached == detached).sum())} of {TOKENS} tokens the same")
    print(f"ledger       {calls} calls of attached seats, {fallbacks} fell back to the host")
    print(f"\ndetached     logits before {before[:16]}, after {after[:16]} (sha256)")
    same = before == after
    print(f"             {'bit-identical' if same else 'NOT bit-identical: the host changed'}")
    return same


def _prompt(demo: Demo) -> Tensor:
    import torch

    return torch.tensor(demo.loaded.tokenizer(PROMPT)["input_ids"])


def _decode(demo: Demo, tokens: Tensor) -> str:
    return repr(demo.loaded.tokenizer.decode(tokens))


def _digest(logits: Iterable[Tensor]) -> str:
    """Of the very bits of all logits."""
    digest = hashlib.sha256()
    for tensor in logits:
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def _table(rows: Sequence[tuple[str, Figures]]) -> None:
    """Mean cosine of logits, argmax agreement, perplexity and its ratio to the host's."""
    print(f"  {'':<44} {'cosine':>8} {'agree':>7} {'perplexity':>11} {'ratio':>7}")
    for name, found in rows:
        print(
            f"  {name:<44} {found.cosine:8.4f} {found.agreement:7.4f}"
            f" {found.perplexity:11.3f} {found.ratio:7.4f}"
        )
    print(f"  {'untouched':<44} {1:8.4f} {1:7.4f} {rows[0][1].reference:11.3f} {1:7.4f}")


# ---------------------------------------------------------------- --full


def _ungated(demo: Demo) -> None:
    """What bfloat16 alone costs, and what binding everything without gates costs."""
    with progress() as say:
        say("running the model in bfloat16")
        bfloat16 = _in_bfloat16(demo)
        say("building without gates")
        bound, built = _built(demo, list(demo.calibration))
    print("\nfor comparison, without gates")
    _table([("the model in bfloat16", bfloat16), (f"build, {bound} seats bound", built)])


def _in_bfloat16(demo: Demo) -> Figures:
    """The same model, loaded once more in bfloat16."""
    import torch

    from frtspec.live import smollm
    from frtspec.live.language import Host, figures

    model = Host(smollm.load(dtype=torch.bfloat16).model)
    return figures(demo.reference, model.logits(demo.held_out), demo.held_out)


def _built(demo: Demo, observations: list[Any]) -> tuple[int, Figures]:
    """Seats bound without a gate, and the figures while they are."""
    with demo.llama.build(
        demo.host.model, demo.host.forward, observations=observations, **ASKED
    ) as plan:
        return len(plan.bound), demo.figures()


def _classic_mistake(demo: Demo) -> None:
    """Calibration on continuations: what it does to the model, and what attach makes of it."""
    with progress() as say:
        say("calibrating without the start of the sequences, building without gates")
        samples = demo.host.continuations(demo.calibration)
        bound, built = _built(demo, samples)
        say("the same calibration, attaching")
        with demo.llama.attach(
            demo.host.model,
            demo.host.forward,
            observations=samples,
            held_out=list(demo.held_out),
            **ASKED,
        ) as plan:
            attached = demo.figures()
    print("\nthe classic mistake: calibration on continuations, whose first 4 tokens came earlier")
    _table([(f"build, {bound} seats bound", built), (f"attach, {len(plan.bound)} bound", attached)])
    print("  refused by attach, the worst first:")
    for record in sorted(map(plan.seat, plan.names("refused")), key=_overshoot, reverse=True):
        print(f"    {record.name}: {record.reason} [{record.code}]")


def _overshoot(record: SeatRecord) -> float:
    """How far past its calibrated range the seat went."""
    gate = record.gate("saturation")
    return max(gate.metrics.values(), default=0.0) if gate is not None else 0.0
