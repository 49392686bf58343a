"""What the binding template needs: one function per seat, and the loops that call them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from frtspec.codegen import configsrc
from frtspec.codegen.configsrc import Scope
from frtspec.codegen.homes import Homes
from frtspec.codegen.names import free, structure_module
from frtspec.codegen.pysrc import WIDTH, Py, call, docstring, imports, pyrepr, told_lines, wrapped
from frtspec.codegen.seatsrc import LOCALS, SeatSource, SeatView, target
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Binding, Chain, HostRef, Impl, Seat, Structure, WeightView


@dataclass(frozen=True)
class BindingView:
    """``dims`` are the lines of ``dims()``, ``loops`` and ``links`` those that fill ``found``,
    ``seats_model`` and ``links_model`` the type of the model that those take."""

    name: str
    path: str
    title: str
    doc: tuple[str, ...]
    summary: tuple[str, ...]
    imports: tuple[str, ...]
    assertions: tuple[str, ...]
    scheme_lines: tuple[str, ...]
    source_digest: str
    contract_digest: str
    hosts: tuple[str, ...]
    dims: tuple[str, ...]
    seats: tuple[SeatView, ...]
    seats_model: str
    loops: tuple[str, ...]
    links_model: str
    links: tuple[str, ...]
    imported: str | None


def _without_parts(seat: Seat, structure: Structure) -> None:
    """Judging a boundary runs the whole reference, so a host would have to hand in its parts.
    Forms that are not executed are not judged either; at run time their seat is refused."""
    if seat.form in ("block", "route", "update"):
        return
    seam_only = seat.seam is not None and seat.boundary is not None and seat.boundary.none_reason
    if structure.parts and not seam_only:
        raise Unsupported(
            f"a seat whose boundary holds the part `{structure.parts[0].name}`", seat.span
        )


def binding_view(binding: Binding, homes: Homes) -> BindingView:
    """The view of a binding. Raises ``Unsupported`` for a seat without a generator."""
    keys = dict.fromkeys(seat.structure for group in binding.groups for seat in group.seats)
    structures = [homes.program.structures[key] for key in sorted(keys)]
    for seat in (seat for group in binding.groups for seat in group.seats):
        _without_parts(seat, homes.program.structures[seat.structure])
    modules = {(s.name, s.version): structure_module(s) for s in structures}
    sizes = {name: Py(f'size["{name}"]') for name, _ in binding.dims}
    scope = Scope({"config": Py("config"), "model": Py("model"), **sizes})
    writers = _Writers(homes)
    builder = SeatSource(scope, homes.program.structures, modules, writers.of)
    seats, loops = builder.build(binding.groups)
    links = builder.links(binding.groups)
    return BindingView(
        name=binding.name,
        path=binding.origin.path,
        title=_title(binding),
        doc=(*_refused(binding), *told_lines(binding.doc, binding.evidence)),
        summary=tuple(_summary(binding)),
        imports=_imports(structures, homes, writers.imports),
        assertions=tuple(
            call(
                "rt.require_digest", f"{structure_module(s)}.SPEC", pyrepr(s.origin.contract_digest)
            ).text
            for s in structures
            if homes.shared(s)
        )
        + writers.assertions(),
        scheme_lines=tuple(_scheme_lines(homes.program.schemes)),
        source_digest=binding.origin.source_digest,
        contract_digest=binding.origin.contract_digest,
        hosts=tuple(_host(host) for host in binding.hosts),
        dims=tuple(_dims(binding)),
        seats=tuple(seats),
        seats_model=_model(loops),
        loops=tuple(_filled("rt.Seat", loops)),
        links_model=_model(links),
        links=tuple(_filled("rt.Chain | rt.SeatGroup", links) if links else ()),
        imported=_imported(binding),
    )


def _title(binding: Binding) -> str:
    """The classes with their packages, or the native modules where there are no classes, or
    the packages where an imported binding names no more."""
    rows = []
    for host in binding.hosts:
        versions = f" {host.versions}" if host.versions else ""
        if host.classes:
            rows.append(f"{', '.join(host.classes)} ({host.package}{versions})")
    if rows:
        return f"Seats of {'; '.join(rows)}."
    modules = [host.module for host in binding.hosts if host.module]
    if modules:
        return "\n".join(docstring(f"What {', '.join(modules)} is made of."))
    return f"Seats of some model of {', '.join(host.package for host in binding.hosts)}."


def _host(host: HostRef) -> str:
    named: dict[str, str] = {}
    if host.classes:
        named["classes"] = pyrepr(host.classes)
    if host.module is not None:
        named["module"] = pyrepr(host.module)
    return call("rt.Host", pyrepr(host.package), pyrepr(host.versions), **named).text


def _imported(binding: Binding) -> str | None:
    """Why attach refuses: the binding's own reason, or where it has no seats, that of the
    pipelines it is there for."""
    if binding.status.name == "imported":
        return binding.status.reason
    reasons = [use.status.reason for use in binding.pipelines if use.status.name == "imported"]
    return None if binding.groups or not reasons else reasons[0]


def _refused(binding: Binding) -> list[str]:
    """The lines that tell a reader of the file that nothing can be attached with it."""
    reason = _imported(binding)
    return [] if reason is None else ["Not verified, so `attach` refuses it:", f"{reason}.", ""]


@dataclass
class _Writers:
    """The impls that write what a binding's chains carry, as they are asked for."""

    homes: Homes
    used: dict[str, Impl] = field(default_factory=dict)

    def of(self, chain: Chain, seats: Sequence[Seat]) -> str | None:
        """The class of the newest impl of the producer's structure for the chain's wire."""
        producer = next(seat for seat in seats if seat.name == chain.producer[0])
        fits = [
            impl
            for impl in self.homes.program.impls.values()
            if (impl.structure, impl.seam, impl.wire)
            == (producer.structure, producer.seam, chain.wire)
        ]
        if not fits:
            return None
        impl = max(fits, key=lambda one: (one.version, one.name))
        name = self.homes.impl_class(impl)
        self.used[name] = impl
        return name

    @property
    def imports(self) -> list[str]:
        return [f"from {self.homes.path(i)} import {name}" for name, i in sorted(self.used.items())]

    def assertions(self) -> tuple[str, ...]:
        return tuple(
            call("rt.require_digest", f"{name}.SPEC", pyrepr(impl.origin.contract_digest)).text
            for name, impl in sorted(self.used.items())
            if self.homes.shared(impl)
        )


def _imports(structures: Sequence[Structure], homes: Homes, more: Sequence[str]) -> tuple[str, ...]:
    """Imports of generated modules, sorted as import sorters do."""
    grouped: dict[str, list[str]] = {homes.package: ["schemes"]}
    for structure in structures:
        package = f"{homes.home(structure)}.structures"
        grouped.setdefault(package, []).append(structure_module(structure))
    lines = [f"from {package} import {', '.join(names)}" for package, names in grouped.items()]
    return imports(["from frtspec import runtime as rt", *lines, *more])


def _model(lines: Sequence[str]) -> str:
    """The type of ``model`` for lines that may look deep into it, where torch knows no types."""
    deep = any(re.search(r"\bmodel\.", line) for line in lines)
    return "Any" if deep else "torch.nn.Module"


def _filled(kind: str, loops: Sequence[str]) -> list[str]:
    """The body of ``seats()`` or ``links()``: what its lines need, then the lines."""
    text = "\n".join(loops)
    lines = []
    if "config" in text:
        lines.append("config: Any = model.config")
    if "size" in text:
        lines.append("size = dims(model)")
    return [*lines, f"found: list[{kind}] = []", *loops]


def _dims(binding: Binding) -> list[str]:
    """The body of ``dims()``: one dict, or locals first where a dim uses another."""
    names = {name: free(name, LOCALS) for name, _ in binding.dims}
    used = any("config" in configsrc.names_in(expr) for _, expr in binding.dims)
    head = ["config: Any = model.config"] if used else []
    roots = {"config": Py("config"), "model": Py("model")}
    scope = Scope({**roots, **{name: Py(own) for name, own in names.items()}})
    texts = [(name, configsrc.value(expr, scope)) for name, expr in binding.dims]
    if not any(names.keys() & configsrc.names_in(expr) for _, expr in binding.dims):
        rows = ", ".join(f"{pyrepr(name)}: {text}" for name, text in texts)
        return [*head, "return {" + rows + ("," if rows else "") + "}"]
    rows = ", ".join(f"{pyrepr(name)}: {own}" for name, own in names.items())
    return [*head, *(f"{names[name]} = {text}" for name, text in texts), "return {" + rows + "}"]


def _scheme_lines(names: Iterable[str]) -> list[str]:
    """What `attach` says about its option `scheme`, in the column of the options."""
    known = ", ".join(f'"{name}"' for name in names)
    text = f'a quantisation scheme by name ({known}), or "auto" by device'
    return wrapped(text, width=WIDTH - 19)


def _summary(binding: Binding) -> list[str]:
    """One aligned row per seat (name, what sits there, where), then one per pipeline."""
    rows = []
    for group in binding.groups:
        for seat in group.seats:
            rows.append((seat.name, target(seat), seat.path.text, _form(seat)))
    widths = [max((len(row[k]) for row in rows), default=0) for k in (0, 1)]
    lines = []
    for name, what, where, told in rows:
        head = f"{name:<{widths[0]}}   {what:<{widths[1]}}"
        place = f"{where}   ({told})" if told else where
        if len(head) + len(place) > WIDTH - 8:
            lines += [head.rstrip(), f"    {where}", *([f"    ({told})"] if told else [])]
        else:
            lines.append(f"{head}   {place}")
    for use in binding.pipelines:
        stages = ", ".join(stage.name for stage in use.stages)
        what = f"{use.pipeline[0]} v{use.pipeline[1]}: {stages} (its own module)"
        lines += wrapped(what, hang="    ", width=WIDTH - 4)
    return lines


def _form(seat: Seat) -> str:
    """What a reader has to know about how a seat stands in its host."""
    if seat.route is not None:
        return f"function {seat.route.name}"
    if seat.cadence is not None:
        return f"once a {seat.cadence}".replace("a o", "an o")
    if seat.form == "block":
        return "whole, with its children"
    return ", ".join(dict.fromkeys(_module_text(view) for view in seat.siblings))


def _module_text(view: WeightView) -> str:
    text = view.path.text if view.path else ""
    return text.rpartition(".")[0]
