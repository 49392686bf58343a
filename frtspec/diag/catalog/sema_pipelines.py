"""Codes of pipelines and their uses in bindings (FRT071x, FRT072x, FRT09xx)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import BINDING, STRUCTURE, code, file, swap
from frtspec.diag.codes_types import Code

PIPELINE = """pipeline steps version 1 {
  family cond_iter_pipeline

  window noise  : swap from caller cadence tick
  window action : swap readback cadence tick
  buffer cond   : static cadence observation
  buffer scratch : mutable
  state memory writers (encode, act) readers act

  stage encode {
    cadence observation
    read noise
    write (cond, memory, scratch)
    capture host_dependent
  }
  stage act {
    cadence tick
    read (cond, noise)
    read_write (memory, scratch)
    write action
    capture required
  }

  loop run {
    steps = binding
    shapes fixed
    runs act
  }

  embeds s version 1
  conform same_condition : read_only_in_loop (cond)

  gate parity on action { cosine >= 0.999, against (host_eager_same_seed) }
  gate net_win per tick { tick_latency, against (host_eager) }
}
"""

USE = """  pipeline steps version 1 {
    stage encode at model.encoder { capture eager }
    stage act at model.head { capture graph }
    loop run steps = 4
    cadence tick runs (encode, act)
    coverage complete_hot_path {
      hot_path (projections, tail)
      segment projections : structure in encode { seats proj }
      segment tail : host_stage in act { seam "the head" }
    }
  }
}
"""

_USED = file(STRUCTURE, PIPELINE, BINDING.removesuffix("}\n") + USE)
_PLAIN = _USED[: _USED.index("    cadence tick runs")] + "  }\n}\n"
_OTHER = "structure other version 1 {\n" + STRUCTURE.partition("{\n")[2]
_TWO = file(STRUCTURE, _OTHER, PIPELINE, BINDING.removesuffix("}\n") + USE)


def _row(
    number: str, title: str, summary: str, edit: tuple[str, str], fix: str, base: str = _USED
) -> Code:
    return code(number, "pipelines", title, summary, swap(base, *edit), fix)


CODES = (
    _row(
        "0710",
        "value that nobody fills",
        "A stage reads a window, buffer or state region before anything surely filled it. The "
        "caller fills a window that says so; else a stage before, that can't be left out, has to.",
        ("window noise  : swap from caller", "window noise  : swap"),
        "Say `from caller`, or let an earlier stage write it.",
    ),
    _row(
        "0711",
        "writers or readers that do not agree",
        "A state region names the stages that write and read it. They are those that declare it, "
        "and all of them.",
        ("writers (encode, act)", "writers act"),
        "Name every stage that writes it, or leave the access out.",
    ),
    _row(
        "0712",
        "static buffer written inside a loop",
        "A static buffer keeps its storage and its content while a loop runs; the stages of the "
        "loop only read it.",
        ("buffer scratch : mutable", "buffer scratch : static"),
        "Write it before the loop, or declare the buffer mutable.",
    ),
    _row(
        "0713",
        "loop that does not run",
        "A loop says how many steps it takes and which stages it runs: stages that are declared "
        "next to each other, in this order, each in one loop. What ends it early is a host window "
        "that one of them writes.",
        ("steps = binding", "steps = 0"),
        "Write `steps = binding` or a whole number from 1, and `runs (…)`.",
    ),
    _row(
        "0714",
        "stage that says too little",
        "A pipeline has stages, and each says how often it runs and what it reads or writes.",
        ("    cadence observation\n", ""),
        "Add a cadence, and `read (…)` or `write (…)`.",
    ),
    _row(
        "0716",
        "rule that its check cannot hold",
        "Each rule of a pipeline names one check and what it is about. A check is about values, "
        "stages or loops of certain kinds, and some can't hold for what the stages declare.",
        ("read_only_in_loop (cond)", "read_only_in_loop (action)"),
        "Name what the check is about, or another check.",
    ),
    _row(
        "0717",
        "gate of a pipeline that judges nothing",
        "A parity gate names outputs that a stage writes, at least one metric with a bound, and "
        "one baseline. A net_win gate says per what times are taken.",
        ("gate net_win per tick", "gate net_win"),
        "Write `gate parity on action { cosine >= 0.999, against (…) }`.",
    ),
    _row(
        "0718",
        "access that contradicts itself",
        "A stage names each value once; a window that is read back is not the caller's; a state "
        "region that a loop writes is no static buffer.",
        ("read (cond, noise)", "read (cond, noise, memory)"),
        "Write `read_write` for what is both read and written.",
    ),
    _row(
        "0720",
        "stage that is not bound",
        "Every stage of a pipeline that is not optional has a place on the host.",
        ("    stage act at model.head { capture graph }\n    loop run steps = 4\n", ""),
        "Add the stage, or bind another pipeline.",
        base=_PLAIN,
    ),
    _row(
        "0721",
        "capture that the pipeline rules out",
        "A stage that gains nothing without a graph is bound with one.",
        ("capture graph }", "capture eager }"),
        "Bind it with a graph.",
    ),
    _row(
        "0722",
        "loop without a count",
        "A loop whose pipeline leaves the number of steps to the binding, and that nothing ends "
        "early, gets it here, as a whole number from 1 or a config expression.",
        ("    loop run steps = 4\n", ""),
        "Write `loop NAME steps = config.num_inference_steps`.",
    ),
    _row(
        "0723",
        "coverage that is not complete",
        "Every bound stage has a segment, and every name of the hot path is a segment.",
        ("hot_path (projections, tail)", "hot_path (projections, tial)"),
        "Add a segment, or correct the name.",
    ),
    _row(
        "0724",
        "segment that says too little or too much",
        "A structure segment names seats, or what it covers; host_stage and control segments are "
        "made of no structures and say in words what they are.",
        ('{ seam "the head" }', "{}"),
        'Write `seats (…)`, or `seam "…"`.',
    ),
    _row(
        "0725",
        "structure that the pipeline does not embed",
        "What computes a segment is a structure that its pipeline embeds.",
        ("embeds s version 1", "embeds other version 1"),
        "Add it to the pipeline's `embeds`, or class the segment otherwise.",
        base=_TWO,
    ),
    _row(
        "0726",
        "claim that nothing verifies",
        "Where a stage or a value lies, how many steps a loop takes and what a segment is made of "
        "are told by paths, numbers and seats. Words of a source stand for them only in what "
        "was imported, and attaching to that is refused.",
        ("stage act at model.head {", "stage act {"),
        'Name the place, or say `status imported "…"` with the reason.',
    ),
    _row(
        "0727",
        "cadence that does not fit",
        "Where a binding says what runs at each cadence, every bound stage runs at one, and only "
        "bound stages do.",
        ("cadence tick runs (encode, act)", "cadence tick runs encode"),
        "Name every bound stage in a cadence, or give none.",
    ),
    _row(
        "0728",
        "two hosts that are one",
        "A binding for several hosts tells by the model's class which of them it is.",
        (
            '  host transformers ">=5.0,<6" class LlamaForCausalLM\n',
            ('  host transformers ">=5.0,<6" class LlamaForCausalLM\n'
            '  host lerobot ">=0.5" class LlamaForCausalLM\n'),
        ),
        "Leave one of them out.",
    ),
    _row(
        "0901",
        "unknown pipeline",
        "A binding names a pipeline, or a version of one, that no file of the run declares.",
        ("  pipeline steps version 1 {\n    stage", "  pipeline steps version 2 {\n    stage"),
        "Name one that exists.",
    ),
    _row(
        "0902",
        "unknown stage",
        "A loop, a rule, a segment or a binding names a stage that the pipeline does not have.",
        ("runs act\n", "runs atc\n"),
        "Name a stage of the pipeline.",
    ),
)
