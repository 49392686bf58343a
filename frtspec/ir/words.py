"""Closed lists of words that a spec may use, each with what it means.

The language reference prints these tables; checks look words up here.
"""

from __future__ import annotations

ELSEWHERE = {
    "float32": "f32",
    "fp32": "f32",
    "float": "f32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "float8_e4m3fn": "fp8_e4m3",
    "e4m3": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "e5m2": "fp8_e5m2",
    "long": "int64",
    "swish": "silu",
    "concat": "cat",
    "concatenate": "cat",
    "view": "reshape",
    "permute": "transpose",
}
"""What things are called in torch and elsewhere -> their name here; for did-you-mean."""

STATUSES = {
    "draft": "in work",
    "imported": "taken over from elsewhere and not verified; refused by attach",
}

POINT_KINDS = {
    "statistic": "something whose range is measured; reduces by percentile",
    "content": "values kept as they are, such as a table of steps",
    "observation": "facts about the call, such as row counts",
}

GATE_KINDS = {
    "boundary": "how close the outputs come to the reference",
    "latency": "that a form wins time",
}

METRICS = {
    "cosine": (">=", "cosine over the whole tensor of a sample, averaged over samples, in float64"),
    "worst_sample_cosine": (">=", "the smallest cosine of a sample"),
    "max_abs": ("<=", "the largest absolute difference"),
    "p99_abs": ("<=", "99th percentile of a sample's absolute differences, the worst sample's"),
    "rel_l2": ("<=", "norm of the difference over the norm of the reference"),
}
"""Metric -> (the way its bound points, what it is)."""

DISTRIBUTIONS = {"real_distribution": "inputs captured from the host on real samples"}

LATENCY_RULES = {"net_positive": "the form has to win, casts at its edges included"}

LATENCY_PER = {"shape": "judged at each shape that calibration saw"}

INCLUDING = {"boundary": "what the form does at its edges counts, such as casts"}

BASELINES = {
    "torch_compile": "the host's module under torch.compile",
    "unfused_chain": "the reference's ops one by one",
    "vendor": "the vendor library's form of the region",
    "host_chain": "the host's own modules one after the other",
}

FORMATS = {
    "fp8_e4m3": "8-bit float, 4 exponent bits, largest 448",
    "fp8_e5m2": "8-bit float, 5 exponent bits, largest 57344",
    "int8": "8-bit whole numbers, symmetric",
    "bf16": "bfloat16, unscaled",
    "fp16": "float16, unscaled",
}
"""Formats a pack may be stored in."""

PACK_GRANULARITIES = ("tensor", "channel")
SCALE_GRANULARITIES = ("tensor", "channel", "row", "token")
GRANULARITIES = ("tensor", "channel", "row", "token", "block", "group")
SIZED_GRANULARITIES = ("block", "group")

STATISTICS = {
    "amax": (("tensor", "channel"), "the largest absolute value"),
    "none": ((), "nothing is measured: the form needs nothing here"),
}
"""Statistic -> (granularities that can be measured, what it is)."""

SCALES = {
    "static": "fixed by what calibration measured at the point",
    "dynamic": "computed from the values of each call",
}

RUNGS = {
    "hub": "a kernel package from the Hub",
    "local": "a kernel package that ships with frtspec",
    "torch": "torch's own library ops",
    "emulate": "the format's arithmetic in plain torch; only when asked for",
}

NUMERICS = {
    "acc": "dtype of the accumulator of every product",
    "store": "dtype a named value is rounded to on its way",
    "out": "dtype that is written",
}

LAYOUTS = {
    "in_out": "[in, out], as x @ w takes it",
    "out_in": "[out, in], as nn.Linear stores it; transposed on reading",
}

VIEWS = {
    "param": (0, 0, "the parameter itself"),
    "zeros": (0, 0, "zeros of the slot's shape"),
    "ones": (0, 0, "ones of the slot's shape"),
    "transpose": (0, 0, "the parameter, transposed"),
    "chunks": (2, 16, "one of several equal chunks, named in order"),
    "expert": (1, 1, "one expert's slice of a stacked parameter"),
}
"""Weight view -> (least and most further arguments, what it is)."""

FORMS = {
    "swap": "one module is replaced",
    "siblings": "modules that share one input are computed as one",
    "block": "a composition that owns its children",
    "route": "a function that the host looks up per model",
    "update": "a refresh that the caller runs at a slower cadence",
}

PROOFS = {
    "shared_input": "the members get the same tensor",
    "call_order": "the members are called in this order",
}

WIRE_FACTS = {
    "same_storage": "the consumer reads the producer's own output",
    "exclusive_consumer": "nothing else reads it",
}

FACTS = {
    "class": ("class names", "the seat's module is of one of these classes"),
    "bias": ("none or all", "the named modules have no bias, or all have one"),
    "activation": (
        "silu, gelu, gelu_tanh, gelu_erf or relu",
        "the named module computes exactly this",
    ),
    "norm_rounding": ("before_weight or after_weight", "where the named norm rounds"),
    "returns": ("tensor or tuple", "what the seat's module returns"),
    "call": ("positional or keyword", "how the seat's module is called"),
    "forward": ("called", "the seat's forward is called at all"),
}
"""Host fact -> (its values, what it says)."""

FACT_VALUES = {
    "bias": ("none", "all"),
    "activation": ("silu", "gelu", "gelu_tanh", "gelu_erf", "relu"),
    "norm_rounding": ("before_weight", "after_weight"),
    "returns": ("tensor", "tuple"),
    "call": ("positional", "keyword"),
    "forward": ("called",),
}
"""Values of the facts whose values are closed."""

FACTS_OF_MODULES = ("bias", "activation", "norm_rounding")
"""Facts about modules that are named by `of`; the others are about the seat."""
