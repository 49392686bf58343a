"""Names of a spec that generated code cannot give to what they name."""

from __future__ import annotations

from collections.abc import Iterator

from frtspec.codegen.names import taken
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span
from frtspec.ir.decl import Impl, Program, Structure

_MODULE_NAMES = """Bound SeamSpec StructureSpec SPEC SHAPES VARIANTS SEAMS SOURCE_DIGEST CONTRACT_DIGEST
    Poly any_axis at_least at_most axis between check_abi dims divides either equal rows
    reference record"""

MODULE_NAMES = frozenset(_MODULE_NAMES.split())
"""What a structure's module calls things of its own; no dim or argument can be called so."""

_MEMBERS = """SPEC T_destination add_module apply bfloat16 buffers bytes call_super_init children
    compile cpu cuda device double dump_patches eval extra_repr float forward get_buffer
    get_extra_state get_parameter get_submodule given half hosted ipu keep keep_scale kernel
    load_state_dict member modules mtia
    named_buffers named_children named_modules named_parameters on pack parameters
    register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module
    register_parameter register_state_dict_post_hook register_state_dict_pre_hook
    requires_grad_ run rung set_extra_state set_submodule share_memory state_dict to
    to_empty train training type xpu zero_grad"""

MEMBERS = frozenset(_MEMBERS.split())
"""Members that every impl has; no pack, scale, slot, param or axis can be kept under them."""


def name_problems(program: Program) -> Iterator[Diagnostic]:
    """One finding for each name that generated code has other uses for."""
    for structure in program.structures.values():
        yield from _structure(structure)
    for impl in program.impls.values():
        yield from _impl(program.structures[impl.structure], impl)


def _structure(structure: Structure) -> Iterator[Diagnostic]:
    hooks = {f"{seam.name}_with" for seam in structure.seams}
    for what, name, span in _arguments(structure):
        if taken(name) or name in MODULE_NAMES or name in hooks:
            yield _problem(what, name, span, "the generated reference")
    for name in structure.dims:
        if taken(name) or name in MODULE_NAMES:
            yield _problem("dim", name, structure.origin.span, "the generated module")


def _arguments(structure: Structure) -> Iterator[tuple[str, str, Span]]:
    yield from (("input", port.name, port.span) for port in structure.inputs)
    yield from (("output", port.name, port.span) for port in structure.outputs)
    yield from (("slot", slot.name, slot.span) for slot in structure.slots)
    yield from (("variant", axis.name, axis.span) for axis in structure.variants)
    yield from (("param", param.name, param.span) for param in structure.params)


def _impl(structure: Structure, impl: Impl) -> Iterator[Diagnostic]:
    """Members of an impl's class: what it keeps, all under names of their own."""
    packed = {name for pack in impl.packs for name in pack.slots}
    kept = [("slot", slot.name, impl.origin.span) for slot in structure.slots]
    held = [item for item in kept if item[1] not in packed]
    held += [("variant", axis.name, impl.origin.span) for axis in structure.variants]
    held += [("param", param.name, impl.origin.span) for param in structure.params]
    held += [("param", param.name, param.span) for param in impl.params]
    own = {name for _, name, _ in held}
    made = [("pack", pack.name, pack.span) for pack in impl.packs]
    made += [("scale", scale.name, scale.span) for scale in impl.scales]
    rungs = [*impl.rungs, *(rung for band in impl.bands for rung in band.rungs)]
    steps = [step for rung in rungs for step in rung.prepared]
    prepared = {n: ("prepared value", n, s.span) for s in steps for n in s.names if n != "_"}
    made += prepared.values()
    derived = {
        f"{pack.name}_{end}" for pack in impl.packs for end in ("scale", "tensor_scale", "rows")
    }
    for what, name, span in (*held, *made):
        if name in MEMBERS or name.startswith(("run_", "prepare_", "_")):
            yield _problem(what, name, span, f"the class of impl {impl.name}")
    for what, name, span in made:
        if name in own or name in derived:
            yield _problem(what, name, span, f"the class of impl {impl.name}")


def _problem(what: str, name: str, span: Span, where: str) -> Diagnostic:
    return Diagnostic(
        "FRT0835",
        f"{what} cannot be called `{name}`: {where} uses that name itself",
        span,
        help="rename it",
    )
