"""The steps of a rung: what is prepared at bind, and a call of several entries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir.types import Tensor
from frtspec.ir.walk import parts
from frtspec.sema.combos import Combo, combos
from frtspec.sema.common import named_once
from frtspec.sema.context import Context
from frtspec.sema.scope import Scope, Symbol, declare
from frtspec.sema.sizes import Sizes
from frtspec.sema.stepexprs import StepExprs, owns
from frtspec.sema.target import Target
from frtspec.syntax import ast

STEP, NAME, UNREAD, OUTPUTS, RESULTS, WITHOUT = (
    "FRT0440",
    "FRT0441",
    "FRT0442",
    "FRT0443",
    "FRT0444",
    "FRT0450",
)


@dataclass
class Steps:
    """Builds the steps of one rung. ``held``: packs and scales of the impl; ``joint``,
    ``two_level`` and ``static`` as in ``StepExprs``."""

    context: Context
    target: Target
    sizes: Sizes
    held: Scope
    joint: Collection[str]
    two_level: Collection[str]
    static: Mapping[str, str | None]
    read: set[str] = field(default_factory=set)

    def build(
        self,
        prepared: Sequence[ast.StepDecl],
        call: ast.CallStepsDecl | None,
        only: Sequence[tuple[str, tuple[str, ...]]],
    ) -> tuple[tuple[ir.Step, ...], tuple[ir.Step, ...]]:
        exprs = self.exprs()
        first = [self.step(node, replace(exprs, at_bind=True)) for node in prepared]
        lines = [] if call is None else [s for s in call.steps if isinstance(s, ast.StepDecl)]
        then = [self.step(node, exprs) for node in lines]
        made = [step for step in (*first, *then) if step is not None]
        whole = len(made) == len(prepared) + (0 if call is None else len(call.steps))
        if whole:
            self.unread([*prepared, *lines])
            if call is not None:
                self.yielded(call, then, only)
        count = len([step for step in first if step is not None])
        return tuple(made[:count]), tuple(made[count:])

    def exprs(self) -> StepExprs:
        """What names stand for before the first step."""
        structure, target = self.target.structure, self.target
        scope, span = Scope(), target.structure.origin.span
        alias = {} if target.seam else dict(target.aliases())
        sources = target.handed_in
        kinds: list[tuple[str, Collection[str]]] = [
            ("dim", (*structure.dims, *dict(structure.indexed_dims))),
            ("index", [index.name for index in structure.indexes]),
            ("variant", [axis.name for axis in target.variants]),
            ("param", [param.name for param in target.params]),
            ("reference", [n for n in target.values if n not in sources]),
            ("reference", [p.name for p in structure.outputs] if target.seam is None else ()),
            ("slot", [slot.name for slot in target.slots]),
            ("input", sources),
        ]
        for kind, names in kinds:
            for name in names:
                scope.names[name] = Symbol(kind, span)
        for slot in target.slots:
            if slot.index is not None:
                scope.names[slot.name] = Symbol("slot", span, slot.index)
        scope.names.update({n: s for n, s in self.held.names.items() if s.kind != "param"})
        types = {
            name: Tensor(tuple(a.alternatives[0] if a.rows else a for a in t.shape), t.dtype)
            for name, t in structure.types.items()
            if isinstance(t, Tensor)
        }
        for name, of in alias.items():
            if of in types:
                types[name] = types[of]
        for slot in target.slots:
            if slot.index is not None:
                types.pop(slot.name, None)
        handed = {*sources, *(slot.name for slot in target.slots)}
        givable = [p.name for p in structure.inputs if p.optional or p.when is not None]
        givable += [s.name for s in target.slots if s.optional or s.when is not None]
        return StepExprs(
            self.context,
            self.sizes,
            scope,
            {axis.name: axis.values for axis in target.variants},
            frozenset(givable),
            types={n: t if n in handed else Tensor(t.shape, "f32") for n, t in types.items()},
            joint=frozenset(self.joint),
            two_level=frozenset(self.two_level),
            static=self.static,
            alias=alias,
        )

    # ------------------------------------------------------------ one step

    def step(self, node: ast.StepDecl, exprs: StepExprs) -> ir.Step | None:
        exprs.touched.clear()
        value = exprs.value(node.value)
        otherwise = None if node.otherwise is None else exprs.value(node.otherwise)
        when = None if node.when is None else exprs.cond(node.when)
        self.read |= exprs.touched
        right = not isinstance(value, irx.Invalid) and not isinstance(otherwise, irx.Invalid)
        right = right and (node.when is None or when is not None)
        right = self.results(node, value) and right
        rebinds = self.define(node, exprs.scope)
        right = right and (node.kind != "yield" or self.outputs(node))
        if node.kind != "yield" and node.when is not None and otherwise is None and not rebinds:
            self.context.error(
                WITHOUT,
                f"`{node.names[0].id}` has no value where the condition is false",
                node.when.span,
                help="add `otherwise …`, or define it before and let this line take its place",
            )
        if not right:
            return None
        names = tuple(name.id for name in node.names)
        self.note(node, exprs, value, names)
        return ir.Step(node.kind, names, node.several, value, when, otherwise, rebinds, node.span)

    def note(
        self, node: ast.StepDecl, exprs: StepExprs, value: irx.Expr, names: tuple[str, ...]
    ) -> None:
        """What later steps may know of the names."""
        for name in names:
            exprs.types.pop(name, None)
            exprs.owned.discard(name)
            if node.kind == "let" and owns(value):
                exprs.owned.add(name)
        if not node.several and node.when is None:
            exprs.types[names[0]] = exprs.settled(value)[1]

    def results(self, node: ast.StepDecl, value: irx.Expr) -> bool:
        """Whether as many names stand there as the value has results."""
        named_once(self.context, "result", [name for name in node.names if name.id != "_"])
        if node.several != (len(node.names) > 1):
            self.context.error(
                RESULTS,
                "parentheses stand around several results",
                node.names[0].span,
                help=f"write {node.kind} {node.names[0].id} = …",
            )
            return False
        entry = any(isinstance(p, irx.Op) and p.op == "entry" for p in _tops(value))
        if node.several and not entry and not isinstance(value, irx.Invalid):
            self.context.error(
                RESULTS,
                "only an entry has several results",
                node.span,
                help="give each value a line of its own",
            )
            return False
        if not node.several and node.names[0].id == "_" and not _writes(value):
            self.context.error(RESULTS, "this value goes nowhere", node.span, help="leave it out")
            return False
        return True

    def define(self, node: ast.StepDecl, scope: Scope) -> bool:
        """Make the names visible; whether the first had a value before."""
        again = False
        for name in node.names:
            before = scope.names.get(name.id)
            if name.id == "_" or node.kind == "yield":
                continue
            if before is not None and before.kind == "value" and node.kind == "let":
                again = True
                continue
            if before is not None and before.kind == "reference":
                del scope.names[name.id]
            kind = "prepared" if node.kind == "prepare" else "value"
            declare(self.context, scope, node.kind, name, Symbol(kind, name.span))
        return again

    def outputs(self, node: ast.StepDecl) -> bool:
        """Whether every name that a line yields is an output."""
        wrong = [name for name in node.names if name.id not in ("_", *self.targets())]
        for name in wrong:
            self.context.unknown("output", name, self.targets(), code=NAME)
        return not wrong

    def targets(self) -> tuple[str, ...]:
        if self.target.seam is not None:
            return self.target.seam.targets
        return tuple(port.name for port in self.target.structure.outputs)

    # ------------------------------------------------------------ the whole

    def unread(self, nodes: Sequence[ast.StepDecl]) -> None:
        seen: set[str] = set()
        for node in nodes:
            for name in node.names:
                if node.kind == "yield" or name.id == "_" or name.id in seen | self.read:
                    continue
                seen.add(name.id)
                message = f"`{name.id}` is made and never read"
                help = "leave the line out; of several results `_` drops one"
                self.context.error(UNREAD, message, name.span, help=help)

    def yielded(
        self,
        call: ast.CallStepsDecl,
        steps: Sequence[ir.Step | None],
        only: Sequence[tuple[str, tuple[str, ...]]],
    ) -> None:
        """Each output is yielded once, in each combination of variants that the rung serves."""
        yields = [step for step in steps if step is not None and step.kind == "yield"]
        structure = self.target.structure
        served = [combo for combo in combos(structure) if _serves(combo, only)]
        for name in self.targets():
            port = next((p for p in structure.outputs if p.name == name), None)
            wrong: list[tuple[Combo, str, ir.Step | None]] = []
            for combo in served:
                given = [step for step in yields if name in step.names and _runs(step, combo)]
                there = self.target.seam is not None or port is None or combo.exists(port)
                if len(given) > there:
                    problem = "is yielded twice" if there else "does not exist and is yielded"
                    wrong.append((combo, problem, given[-1]))
                elif len(given) < there:
                    wrong.append((combo, "is never yielded", None))
            if wrong:
                combo, problem, step = wrong[0]
                where = f" where {combo.text()}" if len(wrong) < len(served) else ""
                self.context.error(
                    OUTPUTS,
                    f"output `{name}` {problem}{where}",
                    call.span if step is None else step.span,
                    help="each output is yielded once in each variant that the rung serves",
                )


def _serves(combo: Combo, only: Sequence[tuple[str, tuple[str, ...]]]) -> bool:
    chosen = dict(combo.variants)
    return all(chosen.get(axis) in values for axis, values in only)


def _runs(step: ir.Step, combo: Combo) -> bool:
    return step.otherwise is not None or combo.holds(step.when)


def _tops(value: irx.Expr) -> list[irx.Expr]:
    """The values that an expression may be: every arm of a choice."""
    if isinstance(value, irx.Select):
        return [top for _, arm in value.arms for top in _tops(arm)]
    return [value]


def _writes(value: irx.Expr) -> bool:
    return any(isinstance(part, irx.Op) and part.op == "updates" for part in parts(value))
