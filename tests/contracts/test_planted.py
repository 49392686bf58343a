"""Mistakes planted in generated calls are all told: by the contract package where a call breaks
the ABI, by the values where it keeps to it."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import pytest
import torch

from frtspec.runtime import BoundImpl, harness
from tests.contracts import calls
from tests.contracts.calls import HubRung, planted, tried

pytestmark = pytest.mark.usefixtures("packages")

VALUES = r"^values: "

Variants = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Mistake:
    """One text of a rung's own methods, what takes its place, and what then is told.

    where  the variants of the case
    """

    name: str
    impl: str
    right: str
    wrong: str
    told: str
    where: Variants = ()
    dtype: torch.dtype | None = None
    run: str = "run_hub"


FFN, LINEAR = "decoder_ffn_v1-fp8_static", "linear_proj_v1-fp8_static"
BIASED = (("bias", "add"),)
ROPE = "qk_norm_rope_v1-bf16"
HALVES = "[scale, shift, gate]"

MISTAKES = (
    Mistake(
        "scales exchanged",
        FFN,
        "self.gate_up_scale,\n            self.hid_s,",
        "self.hid_s,\n            self.gate_up_scale,",
        VALUES,
    ),
    Mistake(
        "a scale left out",
        FFN,
        "            self.down_scale,\n",
        "            torch.ones_like(self.down_scale),\n",
        VALUES,
    ),
    Mistake(
        "gate and up exchanged",
        FFN,
        "self.gate_up,",
        "torch.cat(self.gate_up.view(torch.uint8).chunk(2)[::-1]).view(self.gate_up.dtype),",
        VALUES,
    ),
    Mistake(
        "another activation",
        FFN,
        "bf16_fp8_swiglu_mlp_bf16",
        "bf16_fp8_geglu_mlp_bf16",
        VALUES,
        where=(("activation", "silu"),),
    ),
    Mistake(
        "a cast left out",
        FFN,
        "x_after_norm.bfloat16()",
        "x_after_norm",
        "contract: .*input: float32, not bfloat16",
        dtype=torch.float32,
    ),
    Mistake(
        "a weight in the other layout",
        LINEAR,
        "self.weight,",
        "self.weight.T.contiguous(),",
        "contract: .*weight: axis 1 is 128, not 512",
        BIASED,
    ),
    Mistake(
        "a weight in the layout of nn.Linear",
        "qkv_pack_v1-bf16",
        "self.weight.mT.contiguous()",
        "self.weight",
        "contract: .*w: axis 0 is",
        BIASED,
    ),
    Mistake(
        "a weight that is a view",
        LINEAR,
        "self.weight,",
        "self.weight.T.contiguous().T,",
        "contract: .*weight: not contiguous",
        BIASED,
    ),
    Mistake(
        "a bias in the wrong dtype",
        LINEAR,
        "self.b.bfloat16()",
        "self.b.float()",
        "contract: .*bias: float32, not bfloat16",
        BIASED,
    ),
    Mistake(
        "values in place of codes",
        "qkv_pack_v1-fp8_static",
        "numerics.to_fp8(x, self.in_s)",
        "x.bfloat16()",
        "contract: .*input: bfloat16, not float8_e4m3fn",
    ),
    Mistake(
        "a residual left out",
        LINEAR,
        "residual.bfloat16().clone()",
        "torch.zeros_like(residual.bfloat16())",
        VALUES,
        where=(("epilogue", "residual_add"),),
        run="run_hub_2",
    ),
    Mistake(
        "the host's residual written over",
        LINEAR,
        "residual.bfloat16().clone()",
        "residual.bfloat16()",
        "written: residual",
        where=(("epilogue", "residual_add"),),
        run="run_hub_2",
    ),
    Mistake(
        "a product without its scale",
        LINEAR,
        "(self.in_s * self.weight_scale).item()",
        "1.0",
        VALUES,
        run="run_hub_2",
    ),
    Mistake(
        "a product without the scale of the tensor",
        "linear_proj_v1-nvfp4_dynamic",
        "alpha=self.alpha_w",
        "alpha=1.0",
        VALUES,
    ),
    Mistake(
        "scales of blocks in rows, not in tiles",
        "linear_proj_v1-nvfp4_dynamic",
        "numerics.swizzled(self.weight_scale)",
        "self.weight_scale.view(self.weight.dtype)",
        r"^values: |contract: .*sfb: ",
    ),
    Mistake("an eps left out", "norm_fused_v1-bf16", "self.eps", "1e-5", VALUES),
    Mistake(
        "weights of two norms exchanged",
        ROPE,
        "self.q_weight, self.k_weight",
        "self.k_weight, self.q_weight",
        VALUES,
    ),
    Mistake(
        "a norm's weight without its offset",
        ROPE,
        "1 + q_norm_weight",
        "q_norm_weight",
        VALUES,
        where=(("norm_weight_mode", "offset"),),
    ),
    Mistake(
        "q and k exchanged",
        ROPE,
        "[q.bfloat16().flatten(-2), k.bfloat16().flatten(-2), k",
        "[k.bfloat16().flatten(-2), q.bfloat16().flatten(-2), k",
        VALUES,
    ),
    Mistake(
        "heads of q and of k exchanged",
        ROPE,
        "both_sin, hq, hkv",
        "both_sin, hkv, hq",
        "contract: .*(kv_heads: |packed_qkv: )",
    ),
    Mistake(
        "tables of neighbours for a rotation of halves",
        ROPE,
        "torch.cat([cos, cos], dim=-1)",
        "cos.repeat_interleave(2, dim=-1)",
        VALUES,
    ),
    Mistake(
        "scale and shift exchanged",
        "adaln_producer_v2-bf16",
        HALVES,
        "[shift, scale, gate]",
        VALUES,
    ),
    Mistake(
        "the kernel's own softmax scale",
        "attention_core_v1-bf16",
        "softmax_scale=self.scale",
        "softmax_scale=None",
        VALUES,
        where=(("scaling", "given"),),
    ),
)


def hub_of(mistake: Mistake) -> HubRung:
    """The rung that a mistake is planted in."""
    (found,) = (
        hub
        for hub in calls.hub_rungs()
        if str(hub).startswith(f"{mistake.impl}-") and hub.rung.run == mistake.run
    )
    return found


def case_of(mistake: Mistake) -> harness.Case:
    cases = hub_of(mistake).cases()
    return next(c for c in cases if all(c.variants[axis] == one for axis, one in mistake.where))


def told(mistake: Mistake, impl: type[BoundImpl] | None) -> str:
    hub, case = hub_of(mistake), case_of(mistake)
    return tried(hub, case, impl=impl, dtype=mistake.dtype).told(max(case.sizes.values()), hub.impl)


@functools.cache
def told_when_right(impl: str, run: str, where: Variants, dtype: torch.dtype | None) -> str:
    return told(Mistake("", impl, "", "", "", where, dtype, run), None)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_is_told(mistake: Mistake) -> None:
    right = told_when_right(mistake.impl, mistake.run, mistake.where, mistake.dtype)
    # What is rounded to bfloat16 before it is coded differs from a float32 host's codes.
    assert right.startswith("values") if mistake.dtype else not right, right
    found = told(mistake, planted(hub_of(mistake), mistake.right, mistake.wrong))
    assert re.search(mistake.told, found), found or "nothing was told"


def test_a_mistake_that_is_not_there_is_no_mistake() -> None:
    with pytest.raises(ValueError, match="do not hold 'no such text'"):
        planted(hub_of(MISTAKES[0]), "no such text", "")


def test_a_call_that_reads_values_on_the_host_is_told_when_it_is_compiled() -> None:
    mistake = next(one for one in MISTAKES if one.name == "a bias in the wrong dtype")
    hub, case = hub_of(mistake), case_of(mistake)
    impl = planted(hub, "x.bfloat16()", "x.bfloat16() * (1.0 if x.max().item() > 0 else 2.0)")
    k = max(case.sizes.values())
    assert not tried(hub, case, impl=impl).told(k, hub.impl)
    assert "data-dependent" in tried(hub, case, impl=impl, compiled=True).told(k, hub.impl).lower()
