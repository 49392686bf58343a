"""Small whole specs that the pages of the checks cut their examples from.

``@`` marks the place where an example and its mended form differ.
"""

from __future__ import annotations

from frtspec.diag.codes_types import EXAMPLE_PATH, Code, Phase

STRUCTURE = """structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w [D, F]
  reference {
    point x_in = x
    yield y = x_in @ w
  }
}
"""

IMPL = """impl fp8 for s version 1 {
  pack  weight = quantize(w.T, fp8_e4m3, per tensor)
  scale in_s   = static(x_in)
  rung emulate
}
"""

SCHEME = """scheme quick {
  at s version 1 { x_in: amax per tensor } use fp8
  otherwise keep "nothing else has a form here"
}
"""

SEAT = """slot w = weight : out_in
    point x_in = input
    boundary at model.layers.{i}.proj { x = input, y = output }"""

BINDING = f"""binding b {{
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims {{ D = config.hidden_size, L = config.num_hidden_layers }}
  each i in 0..L {{
   seat proj : s version 1 at model.layers.{{i}}.proj {{
    dims {{ D = D }}
    {SEAT}
   }}
  }}
}}
"""


def file(*declarations: str) -> str:
    return "frt 1\n\n" + "\n".join(declarations)


def body(reference: str, members: str = "") -> str:
    """A structure around some lines of a reference."""
    lines = "\n    ".join(reference.splitlines())
    extra = "".join(f"  {line}\n" for line in members.splitlines())
    return file(
        "structure s version 1 {\n  dim M, D\n  in  x [rows M, D] : host\n"
        f"  out y [rows M, D] : host\n{extra}  reference {{\n    {lines}\n  }}\n}}\n"
    )


def swap(text: str, right: str, wrong: str) -> tuple[str, str]:
    """(failing, mended): a right text, and the same with one part made wrong."""
    assert right in text, right
    return text.replace(right, wrong, 1), text


def code(
    number: str,
    phase: Phase,
    title: str,
    summary: str,
    example: str | tuple[str, str],
    fix: str,
    path: str = EXAMPLE_PATH,
) -> Code:
    """One row; ``example`` alone, or (failing, mended)."""
    failing, mended = (example, None) if isinstance(example, str) else example
    return Code(f"FRT{number}", title, phase, summary, failing, fix, mended, path)
