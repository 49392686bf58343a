"""Codes of how seats stand in a host and what joins them (FRT064x)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import BINDING, SEAT, STRUCTURE, code, file, swap

_UPDATE = file(STRUCTURE, BINDING.replace(SEAT, f"{SEAT}\n    form update (cadence = prompt)"))

_CORE = """structure core version 1 {
  dim B, H, S, D
  in  q [B, H, S, D] : host
  in  k [B, H, S, D] : host
  out y [B, S, H, D] : host
  reference {
    point q_in = q
    yield y = transpose(q_in + k, 1, 2)
  }
}
"""

_ROUTE = """binding b {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { L = config.num_hidden_layers }
  each i in 0..L {
   seat core : core version 1 at model.layers.{i}.self_attn {
    form route (attention)
    point q_in = arg q of attention
    boundary at model.layers.{i}.self_attn {
      q = arg q of attention,
      k = arg k of attention,
      y = output[0] of attention
    }
   }
  }
}
"""

_ROUTED = file(_CORE, _ROUTE)

_TWO = """structure s version 1 {
  dim M, D
  in  x    [rows M, D] : host
  in  last [rows M, D] : f32
  out y    [rows M, D] : host
  out later [rows M, D] : f32
  reference {
    point x_in = x
    yield y = x_in + x
    yield later = last + last
  }
}
"""

_CHAIN = """binding b {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { L = config.num_hidden_layers }
  each i in 0..L {
   seat first : s version 1 at model.layers.{i}.first {
    point x_in = input
    boundary at model.layers.{i}.first {
      x = input, last = arg last, y = output[0], later = output[1]
    }
   }
   seat second : s version 1 at model.layers.{i}.second {
    point x_in = input
    boundary at model.layers.{i}.second {
      x = input, last = arg last, y = output[0], later = output[1]
    }
   }
   chain first.y -> second.x wire fp8_e4m3 require (same_storage)
  }
}
"""

_CHAINED = file(_TWO, _CHAIN)

CODES = (
    code(
        "0640",
        "bindings",
        "form that does not fit",
        "A swap, a block and siblings take no parameters. An update takes the cadence at which its "
        "caller runs it.",
        swap(_UPDATE, "form update (cadence = prompt)", "form update"),
        "Write `form update (cadence = prompt)`.",
    ),
    code(
        "0641",
        "bindings",
        "route to no function",
        "A route names the function that the host looks up: one that is known, or one of the "
        "host's own with how it is found (`via`) and what it is handed (`args`). Arguments that tell "
        "the calls of the seat (`called_with`, `called_without`) are words, each named once.",
        swap(_ROUTED, "form route (attention)", "form route (attention_fn, via = global)"),
        "Write `form route (attention)`, or `form route (NAME, via = global, args = (a, b))`.",
    ),
    code(
        "0642",
        "bindings",
        "place that is not there",
        "A place at a routed function is one of the arguments that the function is handed, or "
        "what it returns. A layout of a port fits its axes.",
        swap(_ROUTED, "point q_in = arg q of attention", "point q_in = arg query of attention"),
        "Name an argument of the function, as docs/language.md lists them.",
    ),
    code(
        "0643",
        "bindings",
        "wire that a port can't carry",
        "A chain hands on a value in the wire's dtype. A port of the host's dtype can go over any "
        "float or quantised wire; any other port has the dtype that its structure says.",
        swap(_CHAINED, "first.y -> second.x", "first.later -> second.x"),
        "Chain a port of the host's dtype, or use the port's own dtype as the wire.",
    ),
    code(
        "0644",
        "bindings",
        "link between numbers that are not told",
        "A chain joins the seats of one number. Outside their `each` it is not said which number "
        "is meant.",
        file(
            _TWO,
            _CHAIN.replace(
                "   chain first.y -> second.x wire fp8_e4m3 require (same_storage)\n  }\n",
                "  }\n  chain first.y -> second.x wire fp8_e4m3 require (same_storage)\n",
            ),
        ),
        "Put the chain into the `each` of its seats.",
    ),
    code(
        "0645",
        "bindings",
        "chains that go round or meet",
        "A chain hands a value from a seat to one that the host calls later. Chains that lead back "
        "to a seat have no order in which they can run, and a port takes one value.",
        file(
            _TWO,
            _CHAIN.replace(
                "require (same_storage)\n",
                "require (same_storage)\n"
                "   chain second.y -> first.x wire fp8_e4m3 require (same_storage)\n",
            ),
        ),
        "Leave out the chain against the order in which the host calls the seats.",
    ),
)
