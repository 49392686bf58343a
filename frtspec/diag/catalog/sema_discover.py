"""Codes of `discover` blocks (FRT074x)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import code, file, swap

_FFN = """structure ffn version 1 {
  dim M, D, F
  param eps = 1e-6
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w_norm [D]
  slot w_up   [D, F]
  slot b_up   [F]
  slot w_down [F, D]
  variant activation { gelu, silu }
  variant norm_weight_mode { offset, direct }
  reference {
    let h = rms_norm(f32(x), eps)
    let h = h * match norm_weight_mode { offset => 1 + f32(w_norm), direct => f32(w_norm) }
    point normed = cast(h, x)
    let u = normed @ w_up + b_up
    point act = match activation { gelu => gelu_tanh(u), silu => silu(u) }
    let o = act @ w_down
    yield y = x + o
  }
  seam mlp { from normed to o  gate cosine >= 0.995 }
  discover mlp {
    role up   : linear (w_up, b_up)
    role down : linear (w_down)
    role act  : activation tells activation { gelu_tanh => gelu, silu => silu }
    role norm : rms_norm (w_norm) around seat tells norm_weight_mode gives eps
    point normed = input
    point act    = input of down
    boundary around seat { x = input of norm, y = output }
  }
}
"""

_WHOLE = file(_FFN)

CODES = (
    code(
        "0740",
        "discovery",
        "role with other slots than its kind has",
        "A role names the slots of its parameters in the order of its kind: a linear a matrix "
        "and a bias, a norm vectors, an activation none.",
        swap(_WHOLE, "linear (w_up, b_up)", "linear (b_up, w_up)"),
        "Name a slot for each parameter of the role's kind, in its order.",
    ),
    code(
        "0741",
        "discovery",
        "slot without a role",
        "Each slot of what a pattern is for is held by one role: below or at the seat where the "
        "seat reads it, around it where only the boundary does.",
        swap(_WHOLE, "role up   : linear (w_up, b_up)", "role up   : linear (w_up)"),
        "Hold each slot in one role.",
    ),
    code(
        "0742",
        "discovery",
        "variant that a role can't tell",
        "`tells` maps facts of the role's kind to values of a variant axis. What a kind tells is "
        "listed in the docs; the numbers of a model decide it.",
        swap(
            _WHOLE,
            "tells activation { gelu_tanh => gelu, silu => silu }",
            "tells norm_weight_mode tells activation { gelu_tanh => gelu, silu => silu }",
        ),
        "Let a role tell what its kind shows, by the facts of that kind.",
    ),
    code(
        "0743",
        "discovery",
        "pattern that leaves a place open",
        "A pattern says where every point, input and output lies, so that a seat can be written.",
        swap(_WHOLE, "    point act    = input of down\n", ""),
        "Give each point a place, and the boundary its inputs and outputs.",
    ),
    code(
        "0744",
        "discovery",
        "variant that nothing tells",
        "A variant outside a seam can't be seen on the seam's module. A role around the seat tells "
        "it, or the pattern sets it.",
        swap(_WHOLE, " tells norm_weight_mode gives eps", " gives eps"),
        "Set the variant in the pattern, or let a role around the seat tell it.",
    ),
    code(
        "0745",
        "discovery",
        "role or boundary where it can't lie",
        "Only a seam leaves something around its seat; the boundary of a whole structure is its "
        "module. Only projections below a seat can be repeated.",
        swap(_WHOLE, "boundary around seat", "boundary at seat"),
        "Write `around seat` for a seam, `at seat` for a whole structure.",
    ),
)
