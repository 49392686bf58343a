"""Closed lists of the words of pipelines, each with what it means."""

from __future__ import annotations

from dataclasses import dataclass

FAMILIES = {
    "autoregressive_decode": "a causal prefill, then one token after another",
    "cond_iter_pipeline": "a condition once, then a loop of iterations over explicit noise",
}

CADENCES = {
    "request": "once a request",
    "token": "once a token",
    "observation": "once an observation",
    "tick": "once a tick of the controller",
    "prompt": "once a prompt",
    "replan": "when the caller asks again on an unchanged observation",
    "generation_step": "once a step of a generation",
    "plan": "once, when the model is attached",
    "shape_or_position": "when shapes or the bucket of positions change",
    "shape_or_step": "when shapes or the number of steps change",
}

WINDOWS = {
    "swap": "a tensor whose content is exchanged in place, before each run",
    "staged": "host data that is copied into a device tensor of the pipeline",
    "readback": "a tensor that the host reads after the stage",
    "host": "a value of the host, no tensor on the device",
}

BUFFERS = {
    "static": "one storage and shape; written before a loop, only read inside",
    "mutable": "written and read by the stages as they run",
}

ACCESS = {
    "read": "the stage reads it",
    "write": "the stage writes all of it",
    "read_write": "the stage reads it and writes it anew, or a part of it",
}

CAPTURES = {
    "host_dependent": "what the host's code allows",
    "required": "one graph, or the stage gains nothing",
    "bucketed_or_eager": "a graph for each bucket of shapes or positions, else eager",
}
"""How a stage of a pipeline is to be captured."""

BOUND_CAPTURES = {
    "host_dependent": "the source does not say",
    "eager": "no graph",
    "graph": "one graph",
    "graph_or_eager": "one graph, or eager where there is none",
    "bucketed": "a graph for each bucket of shapes or positions",
    "bucketed_or_eager": "the same, else eager",
}
"""How a stage is captured on a host."""

CAPTURE_FITS = {
    "host_dependent": tuple(BOUND_CAPTURES),
    "required": ("graph", "graph_or_eager", "bucketed", "bucketed_or_eager", "host_dependent"),
    "bucketed_or_eager": tuple(BOUND_CAPTURES),
}
"""What a pipeline wants of a stage -> what a binding may say of it."""

SHAPES = {
    "fixed": "every step sees the same shapes",
    "host": "the host decides whether shapes change from step to step",
}

POLICIES = {
    "greedy": "the most likely token",
    "sampling": "a draw from the distribution; its noise is a window",
    "verified_draft": "tokens of a draft that the model verifies, else greedy",
}

PROTECTIONS = {
    "shallow_copy": "the stage gets a fresh container of the same tensors at each run",
}

COVERAGES = {"complete_hot_path": "every piece of work of the hot path is named and classed"}

SEGMENTS = {
    "structure": "computed by structures",
    "state_region": "keeps or updates state",
    "host_stage": "stays the host's work",
    "control": "decides what runs",
}

BASELINES = {
    "host_eager_same_seed": "the host itself, eager, on the same content of every window",
    "host_eager_same_tokens": "the host itself, eager, on the same token of every step",
    "host_eager": "the host itself, eager",
}
"""What a gate of a pipeline compares with -> what that is."""

PARITY_BASELINES = ("host_eager_same_seed", "host_eager_same_tokens")
WIN_BASELINES = ("host_eager",)

GATES = {
    "parity": "how close an output comes to the baseline's",
    "net_win": "that the whole is faster than the baseline",
}

PARITY_METRICS = {
    "cosine": (">=", "cosine over the whole output, in float64"),
    "token_agreement": (">=", "share of positions whose most likely token is the same"),
    "rel_l2": ("<=", "norm of the difference over the norm of the baseline"),
    "max_abs": ("<=", "the largest absolute difference"),
}

WIN_METRICS = {
    "stage_latency": "each stage, median of its runs",
    "step_latency": "one step of a loop, median",
    "ttft": "from the start to the end of the first stage of the first step of the loop",
    "tpot": "one step of the loop that decodes, median",
    "tick_latency": "the whole run of a tick",
    "request_latency": "the whole run of a request",
}


@dataclass(frozen=True)
class Check:
    """A trace check: the kinds of names it is about, in order (the last one repeats when
    ``many``), and what it holds."""

    subjects: tuple[str, ...]
    many: bool
    doc: str


CHECKS = {
    "every_stage_runs": Check((), False, "every bound stage ran, and no other"),
    "explicit_window": Check(
        ("window",),
        True,
        "no stage draws random numbers, and a second run on the same content of these windows "
        "gives the same bits",
    ),
    "read_only_in_loop": Check(
        ("window or buffer",), True, "their bits are the same before and after each step of a loop"
    ),
    "populated_before_loop": Check(
        ("buffer or state",), True, "a stage wrote them before the first step that reads them"
    ),
    "declared_writers": Check(
        ("window or buffer or state",), True, "their bits change only while a declared writer runs"
    ),
    "changes_only_in": Check(
        ("window or buffer or state", "stage"), True, "its bits change only while these stages run"
    ),
    "changes_only_at": Check(
        ("window or buffer or state", "cadence"),
        False,
        "its bits change only while stages of this cadence run",
    ),
    "step_count": Check(
        ("loop",), True, "as many steps as declared; no more where the loop may end early"
    ),
    "fixed_loop": Check(
        ("loop",), True, "as many steps as declared, each on the same shapes and dtypes"
    ),
    "fixed_shapes": Check(("loop",), True, "every step sees the same shapes and dtypes"),
    "static_storage": Check(
        ("window or buffer",), True, "storage address, shape and dtype stay the same"
    ),
    "cost_reported": Check(("stage",), True, "a stage that ran has its time in the trace"),
    "fallback_reported": Check(
        ("stage",), True, "a stage that ran without a graph says for which reason"
    ),
    "skips_gated": Check(
        ("loop",), True, "a skipped step comes with metrics that the parity gate accepts"
    ),
}
"""Trace check -> what it is about and what it holds; every rule of a pipeline names one."""
