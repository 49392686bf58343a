"""Codes of rungs whose calls have several steps (FRT0440 on)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import code, file, swap

_STRUCTURE = """structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w  [D, F]
  slot b? [F]
  reference {
    point x_in = x
    let a = x_in @ w
    let a = a + b  when present b
    yield y = a
  }
}
"""

_IMPL = """impl fp8 for s version 1 {
  pack  weight = quantize(w.T, fp8_e4m3, per tensor)
  scale in_s   = static(x_in)
  rung hub "example/gemm" version 1 {
    prepare w_codes = pack_weight(contiguous(bf16(w.T)))
    prepare bias    = bf16(b) when present b otherwise zeros((F), bf16)
    call {
      let codes = quantize(x_in, fp8_e4m3, in_s)
      let (h, _) = gemm(codes, w_codes, in_s, weight.scale, bias, fast = true)
      yield y = bf16(h)
    }
  }
  rung emulate
}
"""

_WHOLE = file(_STRUCTURE, _IMPL)


def _steps(before: str, after: str) -> tuple[str, str]:
    return swap(_WHOLE, before, after)


CODES = (
    code(
        "0440",
        "impls",
        "step that calls nothing",
        "A name with arguments that is no op of the language is an entry of the rung's package. One "
        "that differs from an op by a letter is most likely that op; an argument without a name "
        "does not stand behind one with a name.",
        _steps("contiguous(bf16(w.T))", "contigous(bf16(w.T))"),
        "Write the op as it is called, or the entry as the package calls it.",
    ),
    code(
        "0441",
        "impls",
        "unknown name in a step",
        "A step reads what the rung is handed, packs, scales, slots, params, dims, values of the "
        "reference, what was prepared, and lets before it; it yields the structure's outputs.",
        _steps("gemm(codes,", "gemm(cods,"),
        "Write a name that is known there.",
    ),
    code(
        "0442",
        "impls",
        "step that is never read",
        "What a step makes goes into another or out. A value that nothing reads costs time at "
        "each call, or memory where it was prepared.",
        _steps("      yield y", "      let idle = clone(x)\n      yield y"),
        "Leave the line out. Of several results `_` drops one.",
    ),
    code(
        "0443",
        "impls",
        "output that is not yielded once",
        "A call yields each output once, in each combination of variants that its rung serves.",
        _steps("yield y = bf16(h)", "yield y = bf16(h)\n      yield y = h"),
        "Yield each output in one line, or in lines whose conditions exclude each other.",
    ),
    code(
        "0444",
        "impls",
        "results that do not fit",
        "Only an entry gives several results, and `let (a, b) = …` takes as many as it gives. "
        "Every other value has a line of its own.",
        _steps("let codes =", "let (codes, _) ="),
        "Give each value a line of its own.",
    ),
    code(
        "0445",
        "impls",
        "op of a step with other arguments",
        "Ops that only steps have, such as `contiguous`, `expand`, `zeros` and `swizzled`, have one "
        "form each.",
        _steps("contiguous(bf16(w.T))", "contiguous(bf16(w.T), 1)"),
        "Write the op as the help shows it.",
    ),
    code(
        "0446",
        "impls",
        "entry that would write into what is not the call's",
        "`updates(r)` says that an entry writes into its argument. A tensor of the host, a weight or "
        "a pack must never change unseen, so `r` is a let that the call made itself: by clone, "
        "zeros, ones, empty_like, or an entry.",
        _steps("gemm(codes, w_codes,", "gemm(codes, updates(x),"),
        "Write into a copy: `let r = clone(x)`.",
    ),
    code(
        "0447",
        "impls",
        "what is prepared reads what a call is handed",
        "`prepare` runs once, when a seat is bound. There are slots, packs, scales, params and dims "
        "then, and no inputs; a number is read from the device then and never in a call.",
        _steps("contiguous(bf16(w.T))", "contiguous(bf16(x))"),
        "Move the line into the call, or prepare from a slot.",
    ),
    code(
        "0448",
        "impls",
        "axis that is not known",
        "What an entry gives has no shape in the spec, so an op on it has to say which axis it "
        "means.",
        _steps("bf16(h)", "bf16(chunk(h, 2, 0))"),
        "Count the axis from the end: `axis = -1`.",
    ),
    code(
        "0449",
        "impls",
        "op on a value that does not fit it",
        "Ops between entries follow the rules of the reference wherever shapes are known.",
        _steps("quantize(x_in, fp8_e4m3, in_s)", "quantize(x_in @ x_in, fp8_e4m3, in_s)"),
        "Give the op what it takes; `frtspec explain` of the rule's own code says more.",
    ),
    code(
        "0450",
        "impls",
        "step without a value",
        "A `let` or `prepare` with `when` has a value where the condition is false as well, as in a "
        "reference: from `otherwise`, or from a line before.",
        _steps(" otherwise zeros((F), bf16)", ""),
        "Add `otherwise …`.",
    ),
)
