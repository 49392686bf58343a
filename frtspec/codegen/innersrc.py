"""How a reference calls the structures in its slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from frtspec.codegen.pysrc import Py, call, pyrepr
from frtspec.ir.decl import Inner, Slot
from frtspec.ir.expr import Op


@dataclass(frozen=True)
class InnerCalls:
    """``slots``: those of the outer structure; ``modules``: the Python module of what is in
    each."""

    slots: Sequence[Slot]
    modules: Mapping[str, str]

    def lines(self, slots: Sequence[Slot]) -> list[str]:
        """How each inner structure is called: with its group, its pins, its points."""
        lines = []
        for slot in slots:
            if slot.inner is None:
                continue
            function = f"{self.modules[slot.name]}.{self._function(slot.inner)}"
            pins = {name: pyrepr(value) for name, value in slot.inner.pins}
            args = [pyrepr(slot.name), function, slot.name, "record", f"{slot.name}_with"]
            lines.append(f"{self._call_name(slot)} = {call('ops.inner', *args, **pins)}")
        return lines

    def _function(self, inner: Inner) -> str:
        if inner.seam is None:
            return "reference"
        return f"SEAMS[{pyrepr(inner.seam)}].call"

    def _call_name(self, slot: Slot) -> str:
        return f"call_{slot.name}"

    def call(self, op: Op, args: list[Py]) -> Py:
        """``call_norm(x, cond)``; of several outputs the one that is meant."""
        slot = next(s for s in self.slots if s.name == args[0].text)
        assert slot.inner is not None
        order = [port.name for port in slot.inner.inputs]
        names = cast(tuple[str, ...], op.attr("given"))
        positional = list(names) == order[: len(names)]
        made = call(
            self._call_name(slot),
            *(args[1:] if positional else ()),
            **({} if positional else dict(zip(names, args[1:], strict=True))),
        )
        outputs = [port.name for port in slot.inner.outputs]
        if len(outputs) == 1:
            return made
        return made.item(str(outputs.index(cast(str, op.attr("output")))))
