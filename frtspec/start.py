"""``frtspec new``: starts of specs, commented, that check as they are."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.dims.shape import symbols_of
from frtspec.ir.decl import Impl, Port, Program, Seam, Slot, Structure


@dataclass(frozen=True)
class Target:
    """What an impl, scheme or binding is begun for."""

    structure: Structure
    seam: Seam | None

    @property
    def text(self) -> str:
        seam = f".{self.seam.name}" if self.seam else ""
        return f"{self.structure.name}{seam} version {self.structure.version}"

    @property
    def slots(self) -> list[Slot]:
        names = None if self.seam is None else self.seam.slots
        return [s for s in self.structure.slots if names is None or s.name in names]

    @property
    def points(self) -> list[str]:
        names = None if self.seam is None else self.seam.points
        points = self.structure.points
        return [p.name for p in points if p.kind == "statistic" and (not names or p.name in names)]

    def impls(self, program: Program) -> list[Impl]:
        """Impls that measure and pack here, by name."""
        seam = None if self.seam is None else self.seam.name
        key = (self.structure.name, self.structure.version, seam)
        return [i for k, i in sorted(program.impls.items(), key=str) if k[:3] == key]


STRUCTURE = '''frt 1

structure {name} version 1 {{
  """What this region computes, in one sentence."""
  status draft

  # Sizes, as symbols. `rows M` below folds every leading axis: [B, S, K] has M = B*S.
  dim M, K, N

  # The boundary: what goes in, what comes out. `host` is the host's own dtype.
  in  x [rows M, K] : host
  out y [rows M, N] : host

  # Weights. A binding says where on the host they are.
  slot w  [K, N]
  slot b? [N] when bias is add

  # What differs between hosts and changes what is computed.
  variant bias {{ none, add }}

  reference {{
    # A point is a value that a scheme can measure and an impl can quantise.
    point x_in = x
    let o = x_in @ w
    yield y = o + b when bias is add otherwise o
  }}

  # How close an impl has to come, on inputs captured from a host.
  gate boundary on real_distribution {{ cosine >= 0.999, max_abs }}
}}
'''


def structure(name: str) -> str:
    """The start of a structure: one product, with a bias or without."""
    return STRUCTURE.format(name=name)


def impl(name: str, target: Target) -> str:
    """The start of an impl: weights and activations in FP8, on torch's emulation only."""
    lines = [
        "frt 1",
        "",
        f"impl {name} for {target.text} {{".replace(
            f"impl {name} for", f"impl {name} version 1 for"
        ),
        '  """Static per-tensor FP8 (E4M3). Say what is fused and for which device."""',
        "  status draft",
        "",
        "  # How weights are packed: once, when a seat is built.",
    ]
    matrices = [s for s in target.slots if s.shape is not None and len(s.shape) == 2]
    lines += [f"  pack {s.name}_q = quantize({s.name}.T, fp8_e4m3, per tensor)" for s in matrices]
    lines.append("  # What calibration fixes: the scale of each point that is quantised.")
    lines += [f"  scale {point}_s = static({point})" for point in target.points]
    lines += [
        "  # What the kernel really does with numbers; the emulation obeys it.",
        "  numerics { acc f32, out bf16 }",
        *(f"  admits {point} {{ bf16, fp16, f32 }}" for point in target.points[:1]),
        "",
        "  # Rungs are tried in this order; kernels go first, as",
        '  #   rung hub "owner/kernel" version 1 { envelope { … } call entry (…) }',
        "  # `emulate` runs only when it is asked for.",
        "  rung emulate",
        "}",
        "",
    ]
    return "\n".join(lines)


def scheme(name: str, target: Target, form: Impl) -> str:
    """The start of a scheme: one route, with the statistics that its impl asks for."""
    stats = [
        f"{point}: amax per {kind}{f' {size}' if size else ''}"
        for point, (kind, size) in form.measured().items()
    ]
    measured = f" {{ {', '.join(stats)} }}" if stats else ""
    return f'''frt 1

scheme {name} {{
  """What this scheme is for, and what it gives up."""
  status draft

  # A route: what calibration measures at each point, and the impl that is used.
  at {target.text}{measured} use {form.name}

  # Every other structure stays as the host has it.
  otherwise keep "no form for this structure"
}}
'''


def binding(name: str, target: Target) -> str:
    """The start of a binding: one seat in every layer, paths to be filled in."""
    s = target.structure
    dims = sorted({symbol for slot in s.slots for symbol in symbols_of(slot.shape or ())})
    path = "model.layers.{i}.mlp"
    inside = {slot.name for slot in target.slots}
    ports = [_port(port) for port in (*s.inputs, *s.outputs) if port.when is None]
    ports = [text for text in ports if text]
    outer = [
        f"slot {slot.name} = {slot.name}.weight"
        for slot in s.slots
        if slot.name not in inside and slot.when is None
    ]
    seat = [
        *([f"dims {{ {', '.join(f'{dim} = {dim}' for dim in dims)} }}"] if dims else []),
        *(f"variant {v.name} = {v.values[0]}  # or {', '.join(v.values[1:])}" for v in s.variants),
        *(f"param {p.name} = {p.default or 1}" for p in s.params),
        *(_slot(slot, s) for slot in target.slots if slot.when is None),
        *(f"point {point} = input" for point in target.points),
        f"boundary at {path} {{ {', '.join([*ports, *outer])} }}",
    ]
    body = "\n".join(f"      {line}" for line in seat)
    settings = "".join(f"    {dim} = config.hidden_size,\n" for dim in dims)
    return f'''frt 1

binding {name} {{
  """Which models this is for. `frtspec scan MODULE:FACTORY` drafts one from a live model."""
  status draft
  host transformers ">=5.13,<6" class LlamaForCausalLM

  # Sizes, from the host's config.
  dims {{
{settings}    L = config.num_hidden_layers
  }}

  each i in 0..L {{
    # One region in each layer. Paths below are relative to the seat's own; put those of the
    # model in, and hold them against it by `frtspec verify {name} MODULE:FACTORY`.
    seat {s.name} : {target.text} at {path} {{
{body}
    }}
  }}
}}
'''


def _slot(slot: Slot, structure: Structure) -> str:
    layout = " : out_in" if slot.shape is not None and len(slot.shape) == 2 else ""
    return f"slot {slot.name} = {slot.name}.weight{layout}"


def _port(port: Port) -> str:
    if port.optional:
        return ""
    return f"{port.name} = {'input' if port.direction == 'in' else 'output'}"
