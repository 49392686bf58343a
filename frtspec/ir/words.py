"""Closed lists of words that a spec may use, each with what it means.

The language reference prints these tables; checks look words up here.
"""

from __future__ import annotations

from collections.abc import Mapping

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

IMPL_GATES = {
    "boundary": "what the structure gives, the form in its place",
    "seam": "what the seam gives that the form stands for",
}
"""What the gate harness holds an impl to by bounds of its own."""

IMPL_DISTRIBUTIONS = {"synthetic": "random inputs and weights, without outliers or structure"}

LATENCY_RULES = {"net_positive": "the form has to win, casts at its edges included"}

LATENCY_PER = {"shape": "judged at each shape that calibration saw"}

INCLUDING = {"boundary": "what the form does at its edges counts, such as casts"}

BASELINES = {
    "torch_compile": (
        "the region under torch.compile",
        "where torch.compile has a backend for the device",
    ),
    "unfused_chain": ("the reference's ops one by one", "anywhere"),
    "vendor": (
        "the vendor library's form of the region",
        "where a library of the device's vendor declares the region",
    ),
    "host_chain": ("the host's own modules one after the other", "on a host"),
}
"""Baseline -> (what it is, where it can run)."""

FORMATS = {
    "fp8_e4m3": "8-bit float, 4 exponent bits, largest 448",
    "fp8_e5m2": "8-bit float, 5 exponent bits, largest 57344",
    "int8": "8-bit whole numbers, -127 to 127",
    "int4": "4-bit whole numbers, -7 to 7, two a byte",
    "nvfp4": "4-bit floats (E2M1), two a byte; an E4M3 scale a block, a float32 one a tensor",
}
"""Formats of codes: a pack or a scaled point may be in one."""

PLAIN_FORMATS = {
    "bf16": "bfloat16",
    "fp16": "float16",
}
"""Formats without a scale that a pack may be cast to."""

Granularities = Mapping[str, Mapping[str, tuple[int, ...]]]

WIRE_FORMATS = ("fp8_e4m3", "int8")
"""Formats that a port can carry, under one scale."""

PACK_GRANULARITIES: Granularities = {
    "fp8_e4m3": {"tensor": (), "channel": (), "block": (128,)},
    "fp8_e5m2": {"tensor": (), "channel": ()},
    "int8": {"tensor": (), "channel": ()},
    "int4": {"group": (32, 64, 128)},
    "nvfp4": {"block": (16,)},
}
"""Format -> granularity -> sizes that a pack can have."""

STATIC_GRANULARITIES: Granularities = {
    "fp8_e4m3": {"tensor": ()},
    "nvfp4": {"tensor": ()},
}
"""Format -> what calibration can fix: for NVFP4 the scale of the tensor, not of its blocks."""

DYNAMIC_GRANULARITIES: Granularities = {
    "fp8_e4m3": {"tensor": (), "row": (), "group": (128,)},
    "int8": {"tensor": (), "row": ()},
    "nvfp4": {"block": (16,)},
}
"""Format -> granularity -> sizes of scales that are computed at each call."""

GRANULARITIES_ARE = {
    "tensor": "one scale",
    "channel": "one for each output channel of a weight",
    "row": "one for each row of an activation",
    "group": "one for so many neighbours along the contraction",
    "block": "FP8: one for each tile of so many rows and columns; NVFP4: 16 neighbours",
}

GRANULARITIES = ("tensor", "channel", "row", "token", "block", "group")
SIZED_GRANULARITIES = ("block", "group")

STATISTICS = {
    "amax": (("tensor", "channel", "block"), "the largest absolute value"),
    "second_moment": (("channel",), "the mean of the squares, over every value of every sample"),
    "histogram": (("tensor",), "how many values have which magnitude"),
    "none": ((), "nothing is measured: the form needs nothing here"),
}
"""Statistic -> (granularities that can be measured, what it is)."""

HISTOGRAM_BINS = (64, 65536)
"""Bins that a histogram may have, least and most; a power of two."""

AMOUNTS = {
    "amax": (("point",), "the largest magnitude at a point; without one, at any of them"),
    "median": (("amax",), "the median of the amax of every point of every seat"),
    "spread": (("point",), "the largest channel (or block) over the median one"),
    "rms": (("point",), "the root of the mean square"),
    "quantile": (("point", "share"), "the magnitude that this share of the values is within"),
    "dispersion": (("point",), "the largest sample over the median one"),
    "max": (("rows",), "the largest row count that calibration saw"),
    "min": (("rows",), "the smallest row count that calibration saw"),
}
"""What a decision may compare, beside ``capability``, dims and numbers -> (arguments, what
it is)."""

AMOUNT_NEEDS = {
    "amax": ("amax", ("tensor",)),
    "spread": ("amax", ("channel", "block")),
    "rms": ("second_moment", ("channel",)),
    "quantile": ("histogram", ("tensor",)),
    "dispersion": ("amax", ("tensor",)),
}
"""Amount of a point -> the statistic it is made of, in one of these granularities."""

SCALES = {
    "static": "fixed by what calibration measured at the point",
    "dynamic": "computed from the values of each call",
    "balance": "a factor for each channel that moves from the activation into its weight",
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
    "part": (2, 2, "one of several equal parts, by its number and their count"),
    "expert": (1, 1, "one expert's slice of a stacked parameter"),
    "flat": (0, 0, "a convolution's weight [N, …] with its axes behind the first as one"),
    "squeeze": (0, 0, "the parameter without its leading axis of size 1"),
}
"""Weight view -> (least and most further arguments, what it is)."""

FORMS = {
    "swap": "one module is replaced",
    "siblings": "modules that share one input are computed as one",
    "block": "a composition that owns its children",
    "route": "a function that the host looks up per model",
    "update": "a refresh that the caller runs at a slower cadence",
}

CADENCES = {
    "observation": "once an observation",
    "prompt": "once a prompt",
}
"""How often the caller of an update runs it."""

LOOKUPS = {
    "registry": "by the name in the module's config, in transformers' attention registry",
    "global": "by its name in the file of the module's class",
    "attribute": "as an attribute of the module",
    "processor": "by its name in the file of the module's attention processor",
    "cache": "as a method of the cache that the module is handed",
}
"""How a host finds the function of a route."""

DECLARED_LOOKUPS = ("global", "attribute", "processor")
"""Lookups that a binding may use for a function of its own; the others are of `ROUTES`."""

ROUTES: dict[str, tuple[str, str, dict[str, str], str]] = {
    "attention": (
        "registry",
        "ALL_ATTENTION_FUNCTIONS",
        {"q": "query", "k": "key", "v": "value", "mask": "attention_mask"},
        "the attention of a transformers model",
    ),
    "rope": (
        "global",
        "apply_rotary_pos_emb",
        {"q": "q", "k": "k", "cos": "cos", "sin": "sin"},
        "the rotary embedding of a transformers model",
    ),
    "cache": (
        "cache",
        "update",
        {"k": "key_states", "v": "value_states"},
        "the update of a transformers cache",
    ),
    "dispatched_attention": (
        "processor",
        "dispatch_attention_fn",
        {"q": "query", "k": "key", "v": "value", "mask": "attn_mask"},
        "the attention of a diffusers model",
    ),
}
"""Function of a route -> (how it is found, its name there, what it is handed: name here ->
its own name for it, what it is)."""

PORT_LAYOUTS = {
    "heads_first": "[B, H, S, D], where the structure has the heads behind the tokens",
    "tokens_first": "[B, S, H, D], where the structure has the tokens behind the heads",
    "flat_heads": "[B, S, H*D], where the structure has heads and their width apart",
    "one_token": "[B, 1, D], where the structure has no axis of tokens",
    "half": "the last axis holds everything twice, one half after the other",
    "every_other": "the last axis holds everything twice, each entry beside its copy",
}
"""How a host lays out a value at a boundary, where it differs from the structure."""

EXPORTS: dict[str, dict[str, tuple[bool, str]]] = {
    "flash_rt": {
        "binding": (False, "its name there, where ours can't be turned back into it"),
        "weights_map": (False, "the host that names the weights there"),
        "weights_root": (False, "modules before the weights' paths here that are left out there"),
        "layout": (False, "the word there for how the host stores a matrix"),
        "boundary_dtype": (False, "the dtype there at the region's boundary"),
        "versions": (True, "of a host: the versions there"),
        "m_profile": (True, "of a phase: how many rows there are there, and the phase's kind"),
        "conditioning": (False, "what the conditioning is made of there"),
    }
}
"""Catalog -> key -> (whether it is about one thing, named in brackets; what it is)."""

PROOFS = {
    "shared_input": "the members get the same tensor",
    "call_order": "the members are called in this order",
}

CHAINED = ("fp8_e4m3",)
"""Formats that the producer of a chain can write."""

WIRE_FACTS = {
    "same_storage": "the consumer reads the producer's own output",
    "exclusive_consumer": "nothing else reads it",
}

GROUP_FACTS = {
    "same_stream": "the seats read one conditioning tensor",
    "same_width": "their outputs are equally wide",
    "same_rows": "they run on equally many rows",
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
