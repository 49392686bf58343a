"""References run: in every combination, every value has the shape and dtype it was given.

A small interpreter of the typed IR, apart from the generator, over the catalog and over
the harder references that the op table has to carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as nnf

from frtspec.dims import Axis, Poly
from frtspec.ir import expr as ir
from frtspec.ir.decl import Inner, Part, Structure
from frtspec.ir.lowering import ATOM, Text, const_text, poly_text
from frtspec.ir.ops import OPS
from frtspec.ir.types import Tensor
from frtspec.runtime import ops as runtime_ops
from frtspec.sema.combos import Combo, combos
from frtspec.sema.typing import infer
from tests.sema.test_specs import CATALOG, analysed

FOLDER = Path(__file__).parent / "references"
SIZES = {
    "B": 2,
    "T": 3,
    "S": 3,
    "Sq": 3,
    "Skv": 5,
    "H": 4,
    "Hq": 4,
    "Hkv": 2,
    "Hk": 2,
    "D": 8,
    "R": 4,
    "F": 12,
    "K": 6,
    "N": 7,
    "C": 5,
    "Nq": 6,
    "Nk": 4,
    "Nv": 9,
    "E": 8,
    "Dk": 6,
    "Dv": 5,
    "M": 6,
    "N[0]": 3,
    "N[1]": 5,
}
REPEATS = 2
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "int64": torch.int64}


def structures() -> list[Structure]:
    catalog, found = analysed(CATALOG)
    harder, more = analysed(sorted(FOLDER.glob("*.frt")))
    assert found == [] and more == []
    return [*catalog.structures.values(), *harder.structures.values()]


STRUCTURES = structures()


def sizes_of(axis: Axis, at: Mapping[str, int], rows: tuple[int, ...]) -> list[int]:
    if axis.rows:
        return list(rows)
    if not axis.alternatives:
        return [10]
    return [axis.alternatives[0].value({**SIZES, **at})]


def inside(inner: Inner) -> Callable[..., torch.Tensor]:
    """A structure in a slot: a random output of it, as its port says, for any tensors."""
    sizes = {
        name: size.value(SIZES) for name, size in inner.dims if SIZES.keys() >= {*size.symbols()}
    }

    def called(output: str, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        (port,) = (port for port in inner.outputs if port.name == output)
        shape: list[int] = []
        for axis in port.shape:
            shape += x.shape[:-1] if axis.rows else [axis.alternatives[0].value(sizes)]
        return torch.randn(shape).to(x.dtype)

    return called


class Run:
    """One reference on random tensors, statement by statement."""

    def __init__(self, structure: Structure, combo: Combo, host: torch.dtype) -> None:
        self.structure, self.combo, self.host = structure, combo, host
        self.typing = infer(structure, combo)
        self.unchecked = False
        self.env: dict[str, Any] = {p.name: float(p.default or 1) for p in structure.params}
        self.rows = (2, 3) if "M" in structure.dims else ()
        self.env |= {slot.name: inside(slot.inner) for slot in structure.slots if slot.inner}
        weights = [slot for slot in structure.slots if slot.inner is None]
        for item in (*structure.inputs, *weights):
            default = getattr(item, "default", None)
            there = combo.exists(item) and (not item.optional or item.name in combo.present)
            if there or (combo.exists(item) and default):
                made = [self.made(item, k) for k in range(REPEATS)]
                self.env[item.name] = made[0] if item.index is None else made

        self.env |= {part.name: self.host_part(part) for part in structure.parts}

    def host_part(self, part: Part) -> Callable[..., Any]:
        """What stays the host's: an argument back, or a random output, by the result's name."""
        outputs = {port.name: port for port in self.structure.outputs}

        def called(*args: torch.Tensor) -> Any:
            known = dict(zip(part.params, args, strict=True))
            results = [
                known[name] if name in known or name not in outputs else self.made(outputs[name], 0)
                for name in part.results
            ]
            return results[0] if len(results) == 1 else tuple(results)

        return called

    def made(self, item: Any, position: int) -> torch.Tensor:
        at = {f"N[{item.index}]": SIZES[f"N[{position}]"]} if item.index else {}
        rows = self.rows
        shape = [n for axis in item.shape for n in sizes_of(axis, at, rows)]
        return torch.randn(shape).to(DTYPES.get(item.dtype or "host", self.host))

    def text(self, expr: ir.Expr) -> Text:
        match expr:
            case ir.Const(value=value):
                return const_text(value)
            case ir.DimValue(poly=poly):
                return poly_text(poly)
            case ir.Ref(name=name, index=None):
                return Text(name, ATOM)
            case ir.Ref(name=name, index=index):
                return Text(f"{name}[{index}]", ATOM)
            case ir.Select(axis=axis, arms=arms):
                value = dict(self.combo.variants)[axis]
                return self.text(next(arm for values, arm in arms if value in values))
            case ir.Op(op="inner", args=(slot, *args), attrs=attrs):
                shown = [repr(dict(attrs)["output"]), *(self.text(arg).text for arg in args)]
                return Text(f"{self.text(slot).text}({', '.join(shown)})", ATOM)
            case ir.Op(op=op, args=args, attrs=attrs):
                return OPS[op].lower([self.text(arg) for arg in args], dict(attrs))
            case _:
                raise AssertionError(expr)

    def value(self, expr: ir.Expr) -> Any:
        scope = {"torch": torch, "nnf": nnf, "ops": runtime_ops, **SIZES, **self.env}
        return eval(self.text(expr).text, scope)

    def body(self, stmts: tuple[ir.Stmt, ...]) -> dict[str, Any]:
        """What the statements emit (in a scan)."""
        emitted: dict[str, Any] = {}
        for stmt in stmts:
            match stmt:
                case ir.Let():
                    self.let(stmt, emitted)
                case ir.Each(index=index, body=body):
                    outer = dict(self.env)
                    for k in range(REPEATS):
                        self.env = outer | {index: k}
                        self.body(body)
                    self.env = outer
                case ir.Scan():
                    self.scan(stmt)
        return emitted

    def let(self, stmt: ir.Let, emitted: dict[str, Any]) -> None:
        if self.combo.holds(stmt.when):
            value = self.value(stmt.value)
        elif stmt.otherwise is not None:
            value = self.value(stmt.otherwise)
        else:
            return
        self.agrees(stmt, value)
        if stmt.kind in ("emit", "next"):
            emitted[stmt.name] = value
        elif stmt.kind != "yield":
            self.env[stmt.name] = value

    def scan(self, stmt: ir.Scan) -> None:
        outer = dict(self.env)
        carried = {name: self.value(start) for name, start in stmt.carries}
        collected: dict[str, list[torch.Tensor]] = {}
        for t in range(stmt.dim.value(SIZES)):
            self.env = outer | carried
            self.env |= {name: outer[name].select(axis, t) for name, axis in stmt.over}
            emitted = self.body(stmt.body)
            for name, value in emitted.items():
                if name in carried:
                    carried[name] = value
                else:
                    collected.setdefault(name, []).append(value)
        axis = stmt.over[0][1]
        self.env = outer | carried
        self.env |= {name: torch.stack(values, axis) for name, values in collected.items()}

    def agrees(self, stmt: ir.Let, value: Any) -> None:
        if self.unchecked:
            return
        inferred = self.typing.defs[id(stmt)]
        assert isinstance(inferred, Tensor)
        at = {
            f"N[{i.name}]": SIZES[f"N[{self.env.get(i.name, 0)}]"] for i in self.structure.indexes
        }
        wanted = [n for axis in inferred.shape for n in sizes_of(axis, at, self.rows)]
        assert list(value.shape) == wanted, stmt.name
        assert value.dtype == DTYPES.get(inferred.dtype, self.host), stmt.name


@pytest.mark.parametrize("host", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda s: f"{s.name}_v{s.version}")
def test_every_value_is_as_typed(structure: Structure, host: torch.dtype) -> None:
    torch.manual_seed(0)
    for combo in combos(structure):
        run = Run(structure, combo, host)
        assert run.typing.problems == ()
        run.body(structure.reference)


def test_the_gated_delta_rule_is_a_recurrence() -> None:
    """Three steps at once are three single steps that hand on their state."""
    structure = next(s for s in STRUCTURES if s.name == "gated_delta")
    torch.manual_seed(0)
    combo = next(c for c in combos(structure) if c.present)
    whole = Run(structure, combo, torch.float32)
    inputs = {name: whole.env[name] for name in ("q", "k", "v", "log_decay", "beta")}
    state = whole.env["state"]
    whole.body(structure.reference)
    for t in range(SIZES["S"]):
        step = Run(structure, combo, torch.float32)
        step.env |= {name: value[:, t : t + 1] for name, value in inputs.items()}
        step.env["state"] = state
        step.unchecked = True
        step.body(tuple(one_step(s) for s in structure.reference))
        state, emitted = step.env["s"], step.env["o"]
        torch.testing.assert_close(emitted[:, 0], whole.env["o"][:, t])
    torch.testing.assert_close(state, whole.env["s"])


def one_step(stmt: ir.Stmt) -> ir.Stmt:
    return replace(stmt, dim=Poly.const(1)) if isinstance(stmt, ir.Scan) else stmt
