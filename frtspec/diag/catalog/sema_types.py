"""Codes of dims, types and dataflow (FRT03xx)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import STRUCTURE, body, code, file, swap

_VARIANT = "variant sign { plain, negated }"

_SCAN = """structure decay version 1 {
  dim B, S, D
  in  x     [B, S, D] : f32
  in  start [B, D] : f32
  out y     [B, S, D] : f32
  reference {
    scan t in S over x[:, t] carry s = start {
      next s = s * 0.5 + x
      emit out = s + x
    }
    yield y = out
  }
}
"""

_REPEATED = """structure several version 1 {
  dim M, K
  index i in 2..=4
  dim N[i]
  in  x    [rows M, K] : host
  out y[i] [rows M, N[i]] : host
  slot w[i] [K, N[i]]
  reference {
    each i { yield y[i] = x @ w[i] }
  }
}
"""

_SEAM = """structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w [D, F]
  reference {
    let h = silu(x)
    let g = h @ w
    yield y = g
  }
  seam product { from h to g  gate cosine >= 0.99 }
}
"""

_GATED = body("yield y = x", "gate boundary on real_distribution { cosine >= 0.999 }")

CODES = (
    code(
        "0301",
        "types",
        "size that can't be read",
        "Sizes are polynomials in dims with whole coefficients and exact division. `rows` stands "
        "first in a shape, and a weight has neither rows nor free axes.",
        swap(file(STRUCTURE), "slot w [D, F]", "slot w [D, 0.5]"),
        "Write a size such as D, 3*D, (Hq + 2*Hkv)*D, R/2, N[i] or sum(N).",
    ),
    code(
        "0302",
        "types",
        "rule that can't be read",
        "`require`, `qualify` and `envelope` hold rules on dims: a bound, a range, a "
        "divisibility or an equality. A rule that can never hold is a mistake.",
        swap(body("yield y = x", "require { 64 <= D <= 256 }"), "64 <= D <= 256", "256 <= D <= 64"),
        "Write D >= 512, 512 <= D <= 16384, D % 16 == 0 or H == 2*G.",
    ),
    code(
        "0303",
        "types",
        "shapes that do not fit",
        "An op meets shapes that it can't join. Sizes are compared by name, so a transposed "
        "weight is an error even where the two sizes happen to be equal.",
        swap(file(STRUCTURE), "slot w [D, F]", "slot w [F, D]"),
        "Correct the shape or the order of axes; `linear(x, w)` takes a weight laid out out_in.",
    ),
    code(
        "0304",
        "types",
        "value that may be absent",
        "A line reads an optional input, a slot, or a value of another variant in a combination "
        "where it is not there. The first such combination is named.",
        swap(
            body(
                "let h = x\nlet h = h * g  when present g\nyield y = h", "in g? [rows M, D] : host"
            ),
            "  when present g",
            "",
        ),
        "Guard the line with `when present …` or the value's own `when`, or give the input "
        "`= zeros`.",
    ),
    code(
        "0305",
        "types",
        "`when` without another value",
        "Where the condition of a `let` is false, its name must have a value: the one it had "
        "before, or the one after `otherwise`.",
        swap(
            body("let h = 0 - x  when sign is negated otherwise x\nyield y = h", _VARIANT),
            " otherwise x",
            "",
        ),
        "Add `otherwise …`, or define the name before.",
    ),
    code(
        "0306",
        "types",
        "output not defined once",
        "Every output is yielded exactly once in every combination in which it exists, and never "
        "where it does not. The same holds for points.",
        swap(body("yield y = x"), "yield y = x", "yield y = x\n    yield y = x"),
        "Yield each output once.",
    ),
    code(
        "0307",
        "types",
        "output of another type",
        "What is yielded has another shape or dtype than the output declares. The reference says "
        "where the host rounds, so the last cast is written too.",
        swap(body("yield y = cast(f32(x), x)"), "cast(f32(x), x)", "f32(x)"),
        "Correct the shape, or cast the value.",
    ),
    code(
        "0308",
        "types",
        "dtypes that do not mix",
        "Products take equal dtypes; elementwise ops mix f32 with narrower floats and nothing "
        "else, because the result would depend on the host's dtype.",
        swap(body("yield y = cast(f32(x) @ f32(w), x)", "slot w [D, D]"), "f32(w)", "w"),
        "Cast one side: f32(…), bf16(…) or cast(…, x).",
    ),
    code(
        "0309",
        "types",
        "choice that is not complete",
        "`match` on a variant has one arm for every value, or `else` for the rest; in a binding "
        "each value of the config stands once.",
        swap(
            body("yield y = match sign { plain => x, negated => 0 - x }", _VARIANT),
            ", negated => 0 - x",
            "",
        ),
        "Add the missing arm or `else => …`; leave out what is there twice.",
    ),
    code(
        "0310",
        "types",
        "wrong arguments of an op",
        "An op is given too few or too many arguments, or a number where it takes a tensor. The "
        "help shows how it is written.",
        swap(body("yield y = rms_norm(x, 1e-6)"), "rms_norm(x, 1e-6)", "rms_norm(x)"),
        "Write the op as the help shows.",
    ),
    code(
        "0311",
        "types",
        "seam that is no cut",
        "A seam is what one host module stands for: what lies between its ends is computed from "
        "the ends, slots and params alone, and nothing outside reads from inside.",
        swap(file(_SEAM), "from h to g", "from g to h"),
        "Move an end, or name every value that crosses.",
    ),
    code(
        "0312",
        "types",
        "repeated value out of place",
        "What is repeated over an index is written with it, `w[i]`, inside `each i`; what is not "
        "repeated is written without.",
        swap(file(_REPEATED), "x @ w[i]", "x @ w"),
        "Write `w[i]` inside `each i { … }`, and sum(N) where one number is wanted.",
    ),
    code(
        "0313",
        "types",
        "scan that does not work",
        "A scan walks one axis of named values, carries at least one value, replaces it once at "
        "each step, and keeps its shape and dtype.",
        swap(file(_SCAN), "      next s = s * 0.5 + x\n", ""),
        "Give every carried value one `next` of its own type.",
    ),
    code(
        "0314",
        "types",
        "member or statement out of place",
        "`next` and `emit` stand in a scan, points at the top level, `otherwise` after a `when`; "
        "`updates` belongs to outputs and defaults to optional inputs.",
        swap(body("let h = x\nyield y = h"), "let h = x\n", "emit h = x\n    let h = x\n"),
        "Move the line to where it has a meaning.",
    ),
    code(
        "0315",
        "types",
        "too many combinations",
        "A structure is checked in every combination of its variants and optional inputs. This "
        "one has more than can be checked in reasonable time.",
        body(
            "let h = x\n"
            + "".join(f"let h = h + a{k}  when present a{k}\n" for k in range(12))
            + "yield y = h",
            "\n".join(f"in a{k}? [rows M, D] : host" for k in range(12)),
        ),
        "Split the structure, or drop variants that only choose how it is executed.",
    ),
    code(
        "0316",
        "types",
        "gate that can't judge",
        "A gate has a bound that points the wrong way or lies out of range, or none at all; or a "
        "word that belongs to the other kind of gate.",
        swap(_GATED, "cosine >= 0.999", "cosine <= 0.999"),
        "Bound a similarity from below and a difference from above.",
    ),
    code(
        "0317",
        "types",
        "number, expression or structure too large",
        "A number is beyond what a size, a version or a float can be, an expression is nested "
        "deeper than anyone can read, or a structure is made of too many others.",
        swap(file(STRUCTURE), "slot w [D, F]", "slot w [D ** 20, F]"),
        "Write a smaller number, name parts of the expression, or make one structure of several.",
    ),
    code(
        "0318",
        "types",
        "no combination left",
        "`combinations` takes out combinations that do not exist; this one takes out all.",
        swap(
            body(
                "yield y = match sign { plain => x, negated => 0 - x }",
                f"{_VARIANT}\nvariant extra {{ a }}\n".replace("\nvariant extra { a }", "")
                + "combinations { all }",
            ),
            "combinations { all }",
            "combinations { all except (sign is plain, sign is negated) }",
        ),
        "Exclude only what does not exist.",
    ),
    code(
        "0319",
        "types",
        "expression that has no place here",
        "A reference is made of values and ops; conditions follow `when`, variants stand in "
        "`match`, and only optional inputs and slots can be asked about with `present`.",
        swap(body("yield y = x * 2"), "x * 2", 'x * "two"'),
        "Write a value, or move the condition behind `when`.",
    ),
)
