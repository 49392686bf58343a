"""What each number format costs a real model: SmolLM2's 30 MLPs under every impl there is.

    python bench/formats.py [--samples 4] [IMPL …]

Calibrates on real text, builds every seat without gates on the emulation, and holds the
logits on held-out text against the untouched model's. Weight-only impls run for every row
count here, also outside the bands that they are for. Needs what `frtspec demo` needs.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from flashrt_gen import impls, llama

from frtspec import runtime
from frtspec.live import smollm, text
from frtspec.live.language import Figures, Host, figures
from frtspec.runtime import BoundImpl, Route, SchemeSpec, Stat

LENGTH = 256
TARGET = ("decoder_ffn", "mlp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("impls", nargs="*", help="names of impls; all of them by default")
    parser.add_argument("--samples", type=int, default=4, help="sequences of 256 tokens")
    options = parser.parse_args()
    loaded = smollm.load()
    host = Host(loaded.model)
    calibration, held_out = (
        list(text.sequences(loaded.tokenizer, which, count=options.samples, length=LENGTH))
        for which in (text.CALIBRATION, text.HELD_OUT)
    )
    reference = list(host.logits(held_out))
    untouched = figures(reference, reference, held_out)
    print(f"{'impl':16} {'bits':>5} {'seats':>5} {'cosine':>8} {'top-1':>6} {'perplexity':>10}")
    print(f"{'untouched':16} {'':5} {'':5} {'':8} {'':6} {untouched.perplexity:10.2f}", flush=True)
    for impl in forms():
        if options.impls and impl.SPEC.name not in options.impls:
            continue
        bound, bits, found = measured(impl, host, calibration, held_out, reference)
        print(
            f"{impl.SPEC.name:16} {bits:5.2f} {bound:5} {found.cosine:8.5f} "
            f"{found.agreement:6.1%} {found.perplexity:10.2f}",
            flush=True,
        )


def forms() -> Iterator[type[BoundImpl]]:
    """The impls of the MLP, by name."""
    for entry in pkgutil.iter_modules(impls.__path__):
        module = importlib.import_module(f"{impls.__name__}.{entry.name}")
        for found in vars(module).values():
            if not isinstance(found, type) or not issubclass(found, BoundImpl):
                continue
            if found is not BoundImpl and (found.SPEC.structure, found.SPEC.seam) == TARGET:
                yield unbanded(found)


def unbanded(impl: type[BoundImpl]) -> type[BoundImpl]:
    """The same impl for every row count."""
    if not impl.SPEC.bands:
        return impl
    spec = replace(impl.SPEC, bands=(), rungs=impl.SPEC.bands[0].rungs)
    return type(impl.__name__, (impl,), {"SPEC": spec})


def measured(
    impl: type[BoundImpl], host: Host, calibration: Any, held_out: Any, reference: Any
) -> tuple[int, float, Figures]:
    """Seats bound, bits a weight (scales counted), and the figures on the held-out text."""
    stats = {scale.point: Stat("amax", scale.per) for scale in impl.SPEC.scales.values()}
    route = Route(*TARGET, stats, impl)
    scheme = SchemeSpec("one", "", "", (route,), "one impl is measured")
    binding = replace(llama.HOST, schemes={"one": scheme})
    with runtime.build(
        binding,
        host.model,
        host.forward,
        scheme="one",
        structures=(TARGET[0],),
        observations=calibration,
        rungs=("emulate",),
    ) as plan:
        bound = [record.bound for record in plan.seats if record.bound is not None]
        weights = sum(w.numel() for b in bound for m in b.modules for w in _weights(host, m))
        bits = 8 * sum(b.bytes_added for b in bound) / max(weights, 1)
        return len(bound), bits, figures(reference, host.logits(held_out), held_out)


def _weights(host: Host, path: str) -> list[torch.Tensor]:
    names = ("gate_proj", "up_proj", "down_proj")
    mlp = host.model.get_submodule(path)
    return [mlp.get_submodule(name).weight for name in names]


if __name__ == "__main__":
    main()
