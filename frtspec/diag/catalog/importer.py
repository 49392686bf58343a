"""Codes of reading and writing other catalogs (FRT0880 to FRT0899)."""

from __future__ import annotations

from frtspec.diag.codes_types import Code, Example

_BINDING = """binding: tiny
structure: decoder_ffn
dims: {D: 64, F: 128, layers: 2}
variant: {activation: silu, norm_weight_mode: direct, conditioning: none}
boundary_dtype: bf16
weights_map:
  tiny_host:
    layout: out_in
    w_gate: "layers.{i}.mlp.gate_proj.weight"
    w_up: "layers.{i}.mlp.up_proj.weight"
    w_down: "layers.{i}.mlp.down_proj.weight"
    w_norm: "layers.{i}.norm.weight"
hosts:
  tiny_host:
    module_path: "layers.{i}"
    versions: ">=1,<2"
"""

_STRUCTURE = """structure: decoder_ffn
version: 1
boundary:
  symbolic_dims: [M, D, F]
  inputs: [{name: x, dims: [M, D]}]
  outputs: [{name: x, dims: [M, D]}]
weights:
  - {slot: w_norm, dims: [D]}
  - {slot: w_gate, dims: [D, F]}
  - {slot: w_up, dims: [D, F]}
  - {slot: w_down, dims: [F, D]}
variants:
  activation: [gelu, silu]
  norm_weight_mode: [offset, direct]
  conditioning: [none, ada_ln]
gates: {parity: {metrics: [cosine]}}
"""

_TICK = """binding: tick
structure: vla_tick_pipeline
stages:
  obs_encode: {seam: "Tiny.encode"}
  action_denoise: {seam: "Tiny.denoise", loop_steps: 4}
hosts:
  native: {module_path: "flash_rt.models.tiny.Tiny"}
"""

_TICK_STRUCTURE = """structure: vla_tick_pipeline
kind: stage_pipeline
version: 2
stages:
  - {name: obs_encode, cadence: observation}
  - {name: action_denoise, cadence: tick}
gates: {parity: {metrics: [cosine]}}
"""


def _catalog(binding: str = _BINDING, structure: str = _STRUCTURE, stem: str = "tiny") -> Example:
    """A project with a catalog of one structure and one binding, imported."""
    name = structure.partition(": ")[2].partition("\n")[0]
    return Example(
        (
            ("flash_rt/__init__.py", ""),
            (f"flash_rt/catalog/bindings/{stem}.yaml", binding),
            (f"flash_rt/catalog/structures/{name}/structure.yaml", structure),
        ),
        ("import", "flash-rt", "--from", "flash_rt", "--out", "specs"),
    )


def _changed(old: str, new: str) -> Example:
    assert old in _BINDING
    return _catalog(_BINDING.replace(old, new))


def _structure(old: str, new: str) -> Example:
    assert old in _STRUCTURE
    return _catalog(structure=_STRUCTURE.replace(old, new))


def _tick(old: str, new: str) -> Example:
    assert old in _TICK
    return _catalog(_TICK.replace(old, new), _TICK_STRUCTURE, "tick")


_NAMED = """frt 1

binding mine {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { D = config.hidden_size, F = config.intermediate_size, L = config.num_hidden_layers }
  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary none "an example"
    }
  }
  EXPORT
}
"""


def _export(line: str) -> Example:
    text = _NAMED.replace("EXPORT", line)
    argv = ("export", "flash-rt", "mine.frt", "--out", "out")
    return Example((("mine.frt", text),), argv)


CODES: tuple[Code, ...] = (
    Code(
        id="FRT0880",
        title="no catalog to import",
        phase="tool",
        summary="`import` reads the bindings and structures of another catalog from a folder: "
        "the one that --from names, or that of the installed package. Neither was found. The "
        "package is looked for without importing it.",
        example=Example((), ("import", "flash-rt", "--from", "nowhere", "--out", "specs")),
        fix="Install the package (`pip install flash-rt`), or name the folder that holds "
        "`bindings/` and `structures/`.",
    ),
    Code(
        id="FRT0881",
        title="file of the catalog that can't be read as YAML",
        phase="tool",
        summary="A file is no YAML, holds no mapping, or uses what is not read: aliases, tags, "
        "deep nesting. Nothing is written when any file can't be read.",
        example=_changed("dims: {D: 64,", "dims: {D: [64,"),
        fix="Mend the YAML at the place shown.",
    ),
    Code(
        id="FRT0882",
        title="key that stands twice in one mapping",
        phase="tool",
        summary="YAML readers take the last of two equal keys and drop the first without a word, "
        "so one of the two lines does nothing. Which one is meant is not to be guessed.",
        example=_changed("boundary_dtype: bf16\n", "boundary_dtype: bf16\nboundary_dtype: f32\n"),
        fix="Keep one of them.",
    ),
    Code(
        id="FRT0883",
        title="field that is missing or of the wrong kind",
        phase="tool",
        summary="A field that the format needs is not there, or holds something else than it "
        "can: a text where a number belongs, a path that is none, a word that can't be a name "
        "in a spec.",
        example=_changed("layers: 2", "layers: two"),
        fix="Write the field as the message says.",
    ),
    Code(
        id="FRT0884",
        title="key that the format does not know",
        phase="tool",
        summary="Nothing is known that the key could mean, so nothing of it is carried over. In "
        "the source it is passed over in silence.",
        example=_changed("boundary_dtype: bf16", "boundary_dtyp: bf16"),
        fix="Correct the spelling, or take it out.",
    ),
    Code(
        id="FRT0885",
        title="name that the source's own catalog does not have",
        phase="tool",
        summary="A binding names a structure, slot, variant, value, dim or stage that the "
        "structure it is about does not have. The source's validator looks at few of them.",
        example=_changed("w_down:", "w_out:"),
        fix="Correct the name: the message shows the ones known.",
    ),
    Code(
        id="FRT0886",
        title="dim that is not declared, or no expression",
        phase="tool",
        summary="A structure of the source uses a dim that its `symbolic_dims` lacks, or a text "
        "that its readers take for the name of one dim where an expression is meant. No two "
        "shapes can be held against each other then.",
        example=_structure("{slot: w_down, dims: [F, D]}", '{slot: w_down, dims: ["2F", H]}'),
        fix="Nothing has to be done for the import: the structures here declare their dims and "
        "solve their expressions.",
    ),
    Code(
        id="FRT0887",
        title="point that nothing defines",
        phase="tool",
        summary="A structure of the source lists a calibration point that is no input, output or "
        "value of its reference, or ties points to a condition that nothing evaluates.",
        example=_structure("gates:", "calibration: {points: [x], optional_when: always}\ngates:"),
        fix="Nothing has to be done for the import: a point here is a definition in the reference.",
    ),
    Code(
        id="FRT0888",
        title="one thing spelled in several ways",
        phase="tool",
        summary="A dtype or a layout is spelled otherwise than in the other bindings, or says in "
        "words what a variant says. Readers that compare the words find a difference where "
        "there is none.",
        example=_changed("boundary_dtype: bf16", "boundary_dtype: float32"),
        fix="Spell it as the others do. The import reads both alike and keeps the word for the "
        "export.",
    ),
    Code(
        id="FRT0889",
        title="versions that don't hold",
        phase="tool",
        summary="The versions of a host are no range as pip writes it, are wider than what was "
        "verified, or hold versions in which a path of the binding is another one.",
        example=_changed('">=1,<2"', '"v1"'),
        fix="Write the range that holds. The import narrows a range to what was verified, and "
        "leaves what it can't compare unverified.",
    ),
    Code(
        id="FRT0890",
        title="paths and hosts that don't fit together",
        phase="tool",
        summary="The weights are named for a host that `hosts` lacks, lie outside of the module "
        "that the binding names, or that module is one which its host never calls.",
        example=_changed("  tiny_host:\n    layout", "  other_host:\n    layout"),
        fix="Name the module that holds every slot, under one host.",
    ),
    Code(
        id="FRT0891",
        title="binding that stays unverified",
        phase="tool",
        summary="The source leaves open what a seat needs, and the host's classes were not "
        "looked at. The binding is written with `status imported` and the reason: `check` takes "
        "it, `attach` refuses it.",
        example=_catalog(),
        fix="Look the open things up in the host, add them, and say `status draft`.",
    ),
    Code(
        id="FRT0892",
        title="coverage that does not add up",
        phase="tool",
        summary="A pipeline's hot path names no segment, a segment lies in no bound stage or is "
        "made of structures that the pipeline does not embed, a stage is covered by nothing, or "
        "there is no coverage at all.",
        example=_tick("hosts:", "cadences: {request: obs_encode, tick: action_denoise}\nhosts:"),
        fix="Class every piece of the hot path, each in a bound stage.",
    ),
    Code(
        id="FRT0893",
        title="entry of an export block in the wrong form",
        phase="tool",
        summary="An entry is about the whole binding and names one thing in brackets, is about "
        "one thing and names none, or says nothing.",
        example=_export('export flash_rt { boundary_dtype[D] = "bf16" }'),
        fix="Write it as the message shows.",
    ),
    Code(
        id="FRT0894",
        title="metric that the source never computes",
        phase="tool",
        summary="A structure of the source is gated by a metric that none of its gates computes: "
        "the gate can't fail by it.",
        example=_structure("metrics: [cosine]", "metrics: [cosine, rel_l2]"),
        fix="Nothing has to be done for the import: a gate here names metrics that exist.",
    ),
    Code(
        id="FRT0895",
        title="binding without a counterpart in the other catalog",
        phase="tool",
        summary="The export was asked for a binding that the other catalog has no name for.",
        example=_export(""),
        fix='Name it: `export flash_rt { binding = "…" }`. Bindings called `flashrt_…` are named '
        "by the rest of their name.",
    ),
    Code(
        id="FRT0896",
        title="structure of the source that has no spec here",
        phase="tool",
        summary="A binding is about a structure, or a version of one, that no spec declares. "
        "What the binding says could not be checked.",
        example=_structure("version: 1", "version: 9"),
        fix="Write the spec of that version, or import from a catalog with a version known here.",
    ),
    Code(
        id="FRT0897",
        title="binding that makes no valid spec",
        phase="tool",
        summary="What the source says is read without a fault, and the language has something "
        "against what it would become. Nothing is written.",
        example=_tick("obs_encode: {seam: ", "obs_encode: {seam: '', capture: "),
        fix="The message says what the language has against it: mend that in the source.",
    ),
    Code(
        id="FRT0898",
        title="native module or method that is not there",
        phase="tool",
        summary="A pipeline's binding names a module, class or method of the package that its "
        "catalog lies in, and the package's sources have none of that name.",
        example=_catalog(_TICK, _TICK_STRUCTURE, "tick"),
        fix="Correct the name in the source; the import keeps the source's words.",
    ),
    Code(
        id="FRT0899",
        title="binding that the other format can't hold",
        phase="tool",
        summary="The binding says more than a document of the other catalog can: sizes that the "
        "host's config decides, views of weights, several layouts.",
        example=_export('export flash_rt { binding = "mine" }'),
        fix="Write a binding of one model, with its numbers.",
    ),
)
