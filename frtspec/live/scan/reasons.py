"""Why a module is in no seat: a closed list of codes."""

from __future__ import annotations

REASONS = {
    "activation": "its activation is none that a structure takes",
    "adapter": "it is wrapped by an adapter, such as LoRA",
    "biases": "of projections that share an input only some have a bias",
    "disagrees": "it has the shape of a structure, and computes something else",
    "functional": "its weight is used while its own forward is not running",
    "hooked": "it carries hooks, which a seat would skip",
    "meta": "its weights are on the meta device",
    "no_pattern": "no structure has a pattern for it",
    "no_path": "a binding has no way to write its path",
    "offloaded": "its weights are offloaded",
    "opaque": "it can't be copied, and so not be tried",
    "parametrized": "its weight is computed at every call",
    "quantised": "it is quantised already",
    "replaced": "its forward was replaced on the instance",
    "returns": "it returns more than a tensor",
    "sharded": "its weights are sharded over processes",
    "shared": "it is the same module as another one",
    "subclass": "it is a subclass with a forward of its own",
    "tied": "its weight is another module's, too",
    "uncalled": "its forward was never called in the run",
    "unproven": "the run did not show what its seat needs",
}
"""Code -> what it says."""
