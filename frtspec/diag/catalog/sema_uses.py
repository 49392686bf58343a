"""Codes of impls, schemes and bindings (FRT04xx to FRT07xx)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import (
    BINDING,
    IMPL,
    SCHEME,
    SEAT,
    STRUCTURE,
    code,
    file,
    swap,
)

_IMPL = file(STRUCTURE, IMPL)
_SCHEME = file(STRUCTURE, IMPL, SCHEME)
_BINDING = file(STRUCTURE, BINDING)

_HUB = IMPL.replace(
    "  rung emulate\n",
    '  rung hub "example/fp8-gemm" version 1 {\n'
    "    call gemm (quantize(x_in, fp8_e4m3, in_s), weight, weight.scale)\n  }\n",
)

_TORCH = IMPL.replace("  rung emulate\n", "  rung torch { lower matmul to scaled_mm }\n")

_ATTENTION = """structure s version 1 {
  dim B, H, S, T, D
  in  q [B, H, S, D] : host
  in  k [B, H, T, D] : host
  in  v [B, H, T, D] : host
  out y [B, H, S, D] : host
  reference {
    let s = f32(q) @ transpose(f32(k), 2, 3)
    yield y = cast(softmax(s, over T) @ f32(v), q)
  }
}
"""

_SDPA = """impl fused for s version 1 {
  numerics { acc f32, out bf16 }
  rung torch { lower softmax to sdpa }
  rung emulate
}
"""

_OFF = 'scheme off {\n  otherwise keep "off"\n}\n'
_AUTO = "auto { capability >= 8.9 => quick, else => off }\n"

_PACKED = """structure pack version 1 {
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

_SIBLINGS = """binding b {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { L = config.num_hidden_layers }
  each i in 0..L {
    seat qk : pack version 1 at model.layers.{i}.self_attn {
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in
      }
    }
  }
}
"""

CODES = (
    code(
        "0401",
        "impls",
        "pack that can't be built",
        "A pack is made of slots by transposing, joining and quantising. Each slot is in one "
        "pack, and parts that are joined fit.",
        swap(_IMPL, "quantize(w.T, fp8_e4m3, per tensor)", "quantize(w.T, fp8_e4m3)"),
        "Write quantize(w.T, fp8_e4m3, per tensor) or cat(a.T, b.T).",
    ),
    code(
        "0402",
        "impls",
        "scale of nothing",
        "A scale names a point that is an operand of a product, and how it is found: static, "
        "from calibration, or dynamic, at each call.",
        swap(_IMPL, "static(x_in)", "static()"),
        "Write static(point) for an operand of @, linear or contract.",
    ),
    code(
        "0403",
        "impls",
        "numerics that say nothing",
        "`acc` and `out` are dtypes; `store` names the value that is rounded on its way.",
        swap(
            _IMPL.replace("  rung emulate", "  numerics { acc f32, out bf16 }\n  rung emulate"),
            "acc f32, out bf16",
            "acc f32, store bf16",
        ),
        "Write numerics { acc f32, store g bf16, out bf16 }.",
    ),
    code(
        "0404",
        "impls",
        "rung that can't run",
        "A rung of a package names package, version and entry, and hands over what it has: "
        "tensors handed in, packs, scales, slots, dims, numbers. A torch rung lowers ops, and "
        "emulation has no members.",
        swap(file(STRUCTURE, _HUB), '"example/fp8-gemm" version 1', '"example/fp8-gemm"'),
        "Complete the rung as the help says.",
    ),
    code(
        "0405",
        "impls",
        "lowering without a place",
        "`lower OP to TARGET` replaces an op that occurs in what the impl is for by a library op "
        "that can stand for it.",
        swap(
            file(STRUCTURE, _TORCH),
            "lower matmul to scaled_mm",
            "lower matmul to native_layer_norm",
        ),
        "Lower an op that is there to a target that stands for it.",
    ),
    code(
        "0406",
        "impls",
        "impl without a rung",
        "Rungs are what runs. An impl without one can never be bound.",
        swap(_IMPL, "  rung emulate\n", ""),
        "Add a rung; `rung emulate` needs nothing more.",
    ),
    code(
        "0407",
        "impls",
        "pack or scale that no rung uses",
        "Torch and emulate rungs use every pack and scale; a kernel uses what its call hands it. "
        "This one is handed to none.",
        swap(
            file(STRUCTURE, _HUB),
            "call gemm (quantize(x_in, fp8_e4m3, in_s), weight, weight.scale)",
            "call gemm (bf16(x_in), weight, weight.scale)",
        ),
        "Hand it to a call, or leave it out.",
    ),
    code(
        "0408",
        "impls",
        "bands that do not fit",
        "A band is a range of row counts, in whole numbers, of a dim that folds rows. Bands do not "
        "overlap, and `otherwise host` says that the model's own module runs the rows they leave.",
        swap(
            _IMPL.replace("rung emulate", "band M in 1..=8 { rung emulate } otherwise host"),
            "band M in 1..=8",
            "band D in 1..=8",
        ),
        "Write band M in 1..=8 { rung … } otherwise host.",
    ),
    code(
        "0409",
        "impls",
        "restriction that restricts nothing",
        "`only` names the values of a variant that an impl serves. Here it names all of them.",
        swap(
            file(
                STRUCTURE.replace(
                    "slot w [D, F]", "slot w [D, F]\n  variant sign { plain, negated }"
                ).replace("x_in @ w", "match sign { plain => x_in @ w, negated => 0 - x_in @ w }"),
                IMPL.replace("rung emulate", "only sign (plain)\n  rung emulate"),
            ),
            "only sign (plain)",
            "only sign (plain, negated)",
        ),
        "Name fewer values, or leave the line out.",
    ),
    code(
        "0410",
        "impls",
        "format that can't be had so",
        "Each format has granularities of its own: INT4 is packed by group, NVFP4 in blocks of "
        "16, and a scale that calibration fixes is one for the whole tensor.",
        swap(_IMPL, "fp8_e4m3, per tensor", "fp8_e4m3, per group 128"),
        "Take a granularity that the help names.",
    ),
    code(
        "0411",
        "impls",
        "pack whose rows are no outputs",
        "Scales by channel, group and block, and factors of balance, belong to rows of codes "
        "[out, in]. A slot is [in, out] until it is transposed.",
        swap(
            _IMPL.replace("per tensor", "per channel"),
            "quantize(w.T, fp8_e4m3, per channel)",
            "quantize(w, fp8_e4m3, per channel)",
        ),
        "Transpose the weights of the pack: w.T.",
    ),
    code(
        "0412",
        "impls",
        "balance that does not balance",
        "What balance takes from the channels of an activation goes into every weight that the "
        "activation meets, and its factors leave room around 1.",
        swap(
            _IMPL.replace("quantize(w.T,", "quantize(balance(w.T, in_b),").replace(
                "  rung emulate", "  scale in_b   = balance(x_in, 0.5, 0.25, 4)\n  rung emulate"
            ),
            "balance(w.T, in_b)",
            "w.T",
        ),
        "Pack the weight by quantize(balance(w.T, in_b), …).",
    ),
    code(
        "0413",
        "impls",
        "scale without a format",
        "A scaled point takes the format of the packed weights that it meets. Where they have "
        "none, or several, the scale names it.",
        swap(_IMPL, "quantize(w.T, fp8_e4m3, per tensor)", "bf16(w.T)"),
        "Say the format: static(x, fp8_e4m3), dynamic(x, int8, per row).",
    ),
    code(
        "0414",
        "impls",
        "param of an impl that is no number",
        "A param of an impl has a number as its default, which a scheme's route may replace.",
        swap(
            _IMPL.replace("quantize(w.T,", "quantize(balance(w.T, in_b),").replace(
                "  rung emulate",
                "  param alpha = 0.5\n  scale in_b   = balance(x_in, alpha, 0.25, 4)\n  rung emulate",
            ),
            "param alpha = 0.5",
            "param alpha",
        ),
        "Write param alpha = 0.5.",
    ),
    code(
        "0415",
        "impls",
        "lowering of a region that is not there",
        "`sdpa` and `chunked_delta` stand for more than the op that they are named with: for an "
        "attention from its scores to its result, and for the steps of the gated delta rule. The "
        "dataflow has to be just that.",
        swap(
            file(_ATTENTION, _SDPA),
            "softmax(s, over T) @ f32(v)",
            "(softmax(s, over T) * 2) @ f32(v)",
        ),
        "Leave the lowering out, or write the region as the help says.",
    ),
    code(
        "0416",
        "impls",
        "form that an impl can't have",
        "`form wire (fp8_e4m3)` says that a chain carries the output of this impl in a format. It "
        "is for a whole structure with one output in the host's dtype. How a seat stands in its "
        "host is said in bindings.",
        swap(
            _IMPL.replace("  rung emulate", "  form wire (fp8_e4m3)\n  rung emulate"),
            "form wire",
            "form swap",
        ),
        "Write form wire (fp8_e4m3), or leave the form out.",
    ),
    code(
        "0417",
        "impls",
        "route to the producer of a chain",
        "An impl with `form wire` writes codes for the seat that a chain leads to. It runs where a "
        "binding declares such a chain; a scheme's route would run it where nobody reads codes.",
        swap(
            file(
                STRUCTURE,
                IMPL,
                IMPL.replace("impl fp8", "impl wire").replace(
                    "  rung emulate", "  form wire (fp8_e4m3)\n  rung emulate"
                ),
                SCHEME,
            ),
            "use fp8",
            "use wire",
        ),
        "Route to an impl of the host's dtype.",
    ),
    code(
        "0418",
        "impls",
        "gate of an impl that is none",
        "An impl's gate is what the gate harness holds it to on synthetic data: bounds for what "
        "the structure gives, or for the seam that the impl stands for. Hosts are judged by the "
        "structure's gates.",
        swap(
            _IMPL.replace(
                "  rung emulate",
                "  gate boundary on synthetic { cosine >= 0.9995 }\n  rung emulate",
            ),
            "boundary on synthetic",
            "boundary",
        ),
        "Write gate boundary on synthetic { cosine >= 0.97 }.",
    ),
    code(
        "0419",
        "impls",
        "looser bound without a reason",
        "A bound below the structure's own has to say what the format can't do better; otherwise "
        "it is a threshold that was moved until it held.",
        swap(
            file(
                STRUCTURE.replace(
                    "  reference {",
                    "  gate boundary on real_distribution { cosine >= 0.999 }\n  reference {",
                ),
                IMPL.replace(
                    "  rung emulate",
                    "  gate boundary on synthetic { cosine >= 0.99 }\n"
                    '  evidence """Eight bits on random data."""\n  rung emulate',
                ),
            ),
            '  evidence """Eight bits on random data."""\n',
            "",
        ),
        'Add evidence """…""" with the reason, or ask for as much as the structure does.',
    ),
    code(
        "0420",
        "impls",
        "scale of a call that makes none",
        "A dynamic scale comes with the codes that it belongs to. A kernel can be handed it where "
        "the same call quantises a tensor by it.",
        swap(
            file(
                STRUCTURE,
                _HUB.replace("static(x_in)", "dynamic(x_in, per row)")
                .replace("per tensor)", "per channel)")
                .replace("weight, weight.scale", "in_s, weight, weight.scale"),
            ),
            "quantize(x_in, fp8_e4m3, in_s)",
            "bf16(x_in)",
        ),
        "Add quantize(x, format, scale), or let the kernel take the scale itself.",
    ),
    code(
        "0501",
        "schemes",
        "route to a form that no impl offers",
        "A scheme uses an impl by its name, for the same structure or seam and version. No impl "
        "of that name is for this target.",
        swap(_SCHEME, "use fp8\n", "use int8\n"),
        "Name an impl that exists, or write the impl.",
    ),
    code(
        "0503",
        "schemes",
        "statistic that can't be measured",
        "Calibration can measure amax per tensor and amax per channel. `none` measures nothing.",
        swap(_SCHEME, "amax per tensor", "amax per row"),
        "Ask for a statistic that can be measured, or `none`.",
    ),
    code(
        "0504",
        "schemes",
        "target with two routes",
        "A scheme says once what becomes of a structure or seam.",
        swap(_SCHEME, "  otherwise", '  at s version 1 keep "twice"\n  otherwise'),
        "Leave one of the two out.",
    ),
    code(
        "0505",
        "schemes",
        "statistics and scales that do not match",
        "Every static scale of the impl needs a statistic of its point, of the same granularity; "
        "and a statistic that no scale reads would be measured for nothing.",
        swap(_SCHEME, "x_in: amax per tensor", "x_in: none"),
        "Ask for exactly what the impl's static scales need.",
    ),
    code(
        "0506",
        "schemes",
        "row of `auto` that is never reached",
        "Rows are tried in order, from high to low capability; the last is `else`.",
        swap(
            file(STRUCTURE, IMPL, SCHEME, _OFF, _AUTO),
            "auto { capability >= 8.9 => quick, else => off }",
            "auto { capability >= 8.9 => quick }",
        ),
        "Sort the rows from high to low and end with `else => …`.",
        path="specs/schemes/auto.frt",
    ),
    code(
        "0601",
        "bindings",
        "host that is not told",
        "A host is a package, a range of versions as pip writes it, and the classes of model.",
        swap(_BINDING, '">=5.0,<6"', '"5 or later"'),
        'Write host transformers ">=5.0,<6" class LlamaForCausalLM.',
    ),
    code(
        "0602",
        "bindings",
        "config expression that can't be evaluated",
        "Expressions of a binding are evaluated on the host's config: fields of `config`, dims, "
        "numbers, strings, operators, `??` and `match`.",
        swap(_BINDING, "D = config.hidden_size,", "D = len(config.layer_types),"),
        "Use the forms that docs/language.md lists.",
    ),
    code(
        "0603",
        "bindings",
        "variant that is not set",
        "A seat sets every variant of its structure that has no default, to one of its values or "
        "by `match` on the host's config.",
        file(
            STRUCTURE.replace(
                "slot w [D, F]", "slot w [D, F]\n  variant sign { plain, negated }"
            ).replace("x_in @ w", "match sign { plain => x_in @ w, negated => 0 - x_in @ w }"),
            BINDING,
        ),
        "Add `variant AXIS = VALUE` to the seat.",
    ),
    code(
        "0604",
        "bindings",
        "slot without a place",
        "A seat says where each slot that is always there is on the host; the boundary does so "
        "for the slots that a seam does not read. A param without a default is set as well.",
        swap(_BINDING, "slot w = weight : out_in\n    ", ""),
        "Add `slot NAME = path.weight : out_in`.",
    ),
    code(
        "0605",
        "bindings",
        "point without a place",
        "What is calibrated must be seen: a seat says where each point of its structure is.",
        swap(_BINDING, "point x_in = input\n    ", ""),
        "Add `point NAME = input of PATH`.",
    ),
    code(
        "0606",
        "bindings",
        "layout that is not told",
        "How a host stores a matrix is said in words, `in_out` or `out_in`, and never guessed "
        "from sizes, which may be equal. Vectors have no layout.",
        swap(_BINDING, "slot w = weight : out_in", "slot w = weight"),
        "Add `: out_in` for a weight as nn.Linear stores it, `: in_out` for its transpose.",
    ),
    code(
        "0607",
        "bindings",
        "boundary that is not told",
        "A seat is judged at the full boundary of its structure, so it says where each input and "
        "output lies, or for a seam that the host has no such place.",
        swap(_BINDING, ", y = output", ""),
        "Write boundary at PATH { x = input of …, y = output }.",
    ),
    code(
        "0608",
        "bindings",
        "siblings that do not fit",
        "Siblings fill the repeated slots of one structure from place 0 on, as many of each, and "
        "say what must be proven about their input.",
        swap(
            file(_PACKED, _SIBLINGS),
            "        w[1] = k_proj.weight : out_in\n",
            "        w[2] = k_proj.weight : out_in\n",
        ),
        "Number the members from 0, without gaps.",
    ),
    code(
        "0609",
        "bindings",
        "host fact about nothing",
        "Facts about modules name them after `of`; the others are about the seat itself.",
        swap(
            file(STRUCTURE, BINDING.replace(SEAT, f"{SEAT}\n    expect returns tensor")),
            "expect returns tensor",
            "expect bias none",
        ),
        "Write `expect bias none of (q_proj)`; `expect returns tensor` needs no `of`.",
    ),
    code(
        "0610",
        "bindings",
        "link that joins nothing",
        "A chain joins two seats; a group is written by one of its seats or by the first called.",
        file(
            STRUCTURE,
            BINDING.replace(
                "   }\n  }\n}", "   }\n   group all over (proj) writer last_called\n  }\n}"
            ),
        ),
        "Name two seats of this binding, or `writer first_called`.",
    ),
    code(
        "0700",
        "unsupported",
        "unsupported",
        "The construct is part of the language and is read and checked, but nothing is generated "
        "from it yet. Nothing that a spec declares is ignored in silence, so it is an error.",
        swap(
            file(
                """structure unwired version 1 {
  dim M, D
  in  x [rows M, D] : fp8_e4m3 scale x_s
  out y [rows M, D] : f32
  reference { yield y = f32(x) * x_s }
}
"""
            ),
            "fp8_e4m3",
            "fp8_e5m2",
        ),
        "Leave it out of what is generated until then.",
    ),
)
