"""Where weights are on the host: paths, layouts, views."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from frtspec.ir import decl as ir
from frtspec.ir import words
from frtspec.sema.common import one_of
from frtspec.sema.context import Context
from frtspec.sema.hostexpr import HostExprs
from frtspec.sema.target import Target
from frtspec.syntax import ast

SLOT, LAYOUT, INDEX = "FRT0604", "FRT0606", "FRT0312"


@dataclass
class Views:
    """Reads slot maps against the slots of a target.

    ``slots``: the slots that may be filled here (those of the target when None).
    ``given``: what was filled, slot -> places (None for a slot that is not repeated).
    """

    context: Context
    target: Target
    host: HostExprs
    slots: tuple[ir.Slot, ...] | None = None
    given: dict[str, dict[int | None, ast.SlotMap]] = field(default_factory=dict)

    def build(self, nodes: Iterable[ast.SlotMap]) -> tuple[ir.WeightView, ...]:
        built = [self.view(node) for node in nodes]
        return tuple(view for view in built if view is not None)

    def view(self, node: ast.SlotMap) -> ir.WeightView | None:
        view, path, args = self.source(node)
        allowed = {s.name: s for s in (self.target.slots if self.slots is None else self.slots)}
        slot = allowed.get(node.slot.id)
        if slot is None:
            self.not_here(node, allowed)
            return None
        index = None if node.index is None else int(node.index.value)
        before = self.given.setdefault(slot.name, {}).setdefault(index, node)
        if before is not node:
            shown = slot.name if index is None else f"{slot.name}[{index}]"
            self.context.error(
                "FRT0208",
                f"slot `{shown}` is filled twice",
                node.slot.span,
                notes=((before.slot.span, "first here"),),
                help="leave one of the two out",
            )
        if not self.index_fits(node, slot, index) or view is None:
            return None
        layout = self.layout(node, slot, view)
        return ir.WeightView(slot.name, index, view, path, args, layout, node.span)

    def not_here(self, node: ast.SlotMap, allowed: dict[str, ir.Slot]) -> None:
        """A slot that is not filled at this place, or that nothing declares."""
        elsewhere = [s.name for s in self.target.structure.slots]
        if node.slot.id not in elsewhere:
            self.context.unknown("slot", node.slot, allowed)
            return
        inside = node.slot.id in [s.name for s in self.target.slots]
        self.context.error(
            SLOT,
            f"slot `{node.slot.id}` is {'the seat' if inside else 'the boundary'}'s",
            node.slot.span,
            help=(
                "fill it in the seat, outside `boundary`"
                if inside
                else f"{self.target.text} does not read it: fill it in `boundary at … {{ slot … }}`"
            ),
        )

    def index_fits(self, node: ast.SlotMap, slot: ir.Slot, index: int | None) -> bool:
        if (slot.index is None) != (index is None):
            problem = "is not repeated" if slot.index is None else "is repeated"
            help = f"write {slot.name}[0], {slot.name}[1] …" if slot.index else None
            self.context.error(INDEX, f"slot `{slot.name}` {problem}", node.slot.span, help=help)
            return False
        variable = next((i for i in self.target.structure.indexes if i.name == slot.index), None)
        if variable is not None and index is not None and index >= variable.hi:
            message = f"`{slot.name}[{index}]` is out of range: there are {variable.hi} at most"
            span = node.index.span if node.index else node.span
            self.context.error(INDEX, message, span, help="places count from 0")
            return False
        return True

    def layout(self, node: ast.SlotMap, slot: ir.Slot, view: str) -> str | None:
        """The layout of a matrix; vectors and made-up values have none."""
        matrix = slot.shape is not None and len(slot.shape) >= 2
        if node.layout is None:
            if matrix and view not in ("zeros", "ones"):
                self.context.error(
                    LAYOUT,
                    f"slot `{slot.name}` is a matrix: its layout on the host is not said",
                    node.span,
                    help="add `: out_in` for a weight as nn.Linear stores it, or `: in_out`",
                )
            return None
        layout = one_of(self.context, "layout", node.layout, words.LAYOUTS)
        if layout is not None and (not matrix or view in ("zeros", "ones")):
            what = "is no matrix" if not matrix else "is made here"
            message = f"slot `{slot.name}` {what}: it has no layout"
            self.context.error(LAYOUT, message, node.layout.span, help="leave the layout out")
        return layout

    # ------------------------------------------------------------ views

    def source(
        self, node: ast.SlotMap
    ) -> tuple[str | None, ast.HostPath | None, tuple[str | int, ...]]:
        """Which view, of which parameter, with which further arguments."""
        if isinstance(node.value, ast.HostPath):
            self.host.path(node.value)
            return "param", node.value, ()
        call = node.value
        view = one_of(self.context, "view of a weight", call.func, words.VIEWS)
        if view is None:
            return None, None, ()
        args: list[object] = [arg.value for arg in call.args]
        least, most, _ = words.VIEWS[view]
        path = args.pop(0) if view not in ("zeros", "ones") and args else None
        if view not in ("zeros", "ones") and not isinstance(path, ast.HostPath):
            self.bad(call, f"`{view}` takes the path of a parameter first")
            return None, None, ()
        if not least <= len(args) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            self.bad(call, f"`{view}` takes {count} further arguments, not {len(args)}")
            return None, None, ()
        assert path is None or isinstance(path, ast.HostPath)
        if path is not None:
            self.host.path(path)
        if view == "expert":
            return view, path, self.expert(call, args[0])
        if view == "part":
            return view, path, self.part(call, args)
        if view == "chunks":
            return view, path, self.chunks(node, call, args)
        return view, path, ()

    def bad(self, call: ast.Call, message: str) -> None:
        self.context.error(SLOT, message, call.span, help=f"{call.func.id}: {_what(call.func.id)}")

    def expert(self, call: ast.Call, which: object) -> tuple[int | str, ...]:
        """The expert's number: written, or the index of an ``each``."""
        if isinstance(which, ast.Number):
            return (int(which.value),)
        if isinstance(which, ast.HostPath) and which.text in self.host.indexes:
            self.context.use("index", which.text)
            return (which.text,)
        self.bad(call, "`expert` takes the number of an expert, or the index of an `each`")
        return ()

    def part(self, call: ast.Call, args: list[object]) -> tuple[int, ...]:
        """(which part, of how many): counted from 0."""
        numbers = [int(arg.value) for arg in args if isinstance(arg, ast.Number)]
        if len(numbers) == 2 and 0 <= numbers[0] < numbers[1]:
            return tuple(numbers)
        self.bad(call, "`part` takes which part, counted from 0, and of how many")
        return ()

    def chunks(self, node: ast.SlotMap, call: ast.Call, args: list[object]) -> tuple[str, ...]:
        """(the chunk wanted, all chunk names…): the one that the slot is named after."""
        names = tuple(a.text for a in args if isinstance(a, ast.HostPath))
        fits = [n for n in names if node.slot.id == n or node.slot.id.endswith(f"_{n}")]
        if len(names) != len(args) or len(set(names)) != len(names):
            self.bad(call, "`chunks` takes the names of the chunks, each once")
            return ()
        if len(fits) != 1:
            self.bad(call, f"slot `{node.slot.id}` is named after none of the chunks")
            return ()
        return (fits[0], *names)


def _what(view: str) -> str:
    return words.VIEWS[view][2]
