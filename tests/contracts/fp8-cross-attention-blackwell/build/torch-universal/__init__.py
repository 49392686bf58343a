# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/fp8-cross-attention-blackwell version 1: grouped attention over FP8.

Not causal. Codes are read under one scale for each operand; logits, softmax and sums are taken
in float32 and rounded once. The ABI does not say what the workspace holds: bytes are taken.
"""

from __future__ import annotations

from torch import Tensor

from ._shared.attention import attend
from ._shared.checking import BF16, F32, FP8, U8, Check, Ops, has_rank

ARCH: str | None = None
"""The compute capability played; None is one that every op runs on."""

OPS = Ops(__name__)


@OPS.op(
    "fp8_gqa_cross_attention_bf16(Tensor query, Tensor key, Tensor value, Tensor query_scale, "
    "Tensor key_scale, Tensor value_scale, Tensor! output, Tensor! lse, Tensor!? workspace)"
)
def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_scale: Tensor,
    key_scale: Tensor,
    value_scale: Tensor,
    output: Tensor,
    lse: Tensor,
    workspace: Tensor | None,
) -> None:
    check = Check("fp8_gqa_cross_attention_bf16")
    check.arch(ARCH, "10.0", "10.3", "11.0")
    check.tensor("query", query, FP8, ("B", "Sq", "Hq", "D"))
    check.tensor("key", key, FP8, ("B", "Sk", "Hkv", "D"))
    check.tensor("value", value, FP8, ("B", "Sk", "Hkv", "D"))
    q_heads, kv_heads = check.sizes["Hq"], check.sizes["Hkv"]
    check.require("key", q_heads % kv_heads == 0, f"{kv_heads} heads for {q_heads} of query")
    scales = {"query_scale": query_scale, "key_scale": key_scale, "value_scale": value_scale}
    for name, scale in scales.items():
        check.scale(name, scale)
    check.tensor("output", output, BF16, ("B", "Sq", "Hq", "D"))
    check.tensor("lse", lse, F32, ("B", "Hq", "Sq"))
    if workspace is not None:
        check.tensor("workspace", workspace, U8)
    q, k, v = (
        one.float() * scales[f"{name}_scale"].reshape(())
        for name, one in (("query", query), ("key", key), ("value", value))
    )
    found, sums = attend(q, k, v, query.shape[-1] ** -0.5)
    output.copy_(found)
    lse.copy_(sums)


def fp8_gqa_cross_attention_bf16(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    query_scale: Tensor,
    key_scale: Tensor,
    value_scale: Tensor,
    output: Tensor | None = None,
    lse: Tensor | None = None,
    workspace: Tensor | None = None,
) -> Tensor:
    """Attention of FP8 query [B, Sq, Hq, D] over key, value [B, Sk, Hkv, D]: bf16 like query."""
    has_rank("fp8_gqa_cross_attention_bf16", 4, query=query)
    batch, steps, heads, _ = query.shape
    if output is None:
        output = query.new_empty(query.shape, dtype=BF16)
    if lse is None:
        lse = query.new_empty((batch, heads, steps), dtype=F32)
    _attention(query, key, value, query_scale, key_scale, value_scale, output, lse, workspace)
    return output
