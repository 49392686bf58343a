"""The facts of an impl as generated code states them: the arguments of ``ImplSpec``."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.codegen.dimsrc import DimNames
from frtspec.codegen.formats import quantised
from frtspec.codegen.pysrc import Py, call, pyrepr, text_literal
from frtspec.codegen.rungsrc import RungMethods
from frtspec.codegen.structview import bounds_text
from frtspec.ir.decl import Granularity, Impl, Need, Rung, Scale, Structure


@dataclass
class SpecFields:
    """Builds the keyword arguments of one ``ImplSpec``. ``rungs`` have their methods made."""

    structure: Structure
    impl: Impl
    rungs: RungMethods
    names: DimNames

    def lines(self) -> list[str]:
        """One ``name=value`` a line."""
        impl = self.impl
        scales = ", ".join(f"{pyrepr(s.name)}: {self.scale(s)}" for s in impl.scales if s.measured)
        rungs = [self.rung(rung) for rung in impl.rungs]
        fields = [
            f"name={pyrepr(impl.name)}",
            f"structure={pyrepr(self.structure.name)}",
            f"structure_version={self.structure.version}",
            f"seam={pyrepr(impl.seam)}",
            f"version={impl.version}",
            f"source_digest={pyrepr(impl.origin.source_digest)}",
            f"contract_digest={pyrepr(impl.origin.contract_digest)}",
            f"scales={{{scales}}}",
            f"admits={pyrepr(dict(impl.admits))}",
            f"only={pyrepr(dict(impl.only))}",
            f"rungs=({', '.join(rungs)}{',' if rungs else ''})",
        ]
        if impl.bands:
            bands = ", ".join(
                f"BandSpec({pyrepr(b.dim)}, {b.lo}, {pyrepr(b.hi)}, ({', '.join(map(self.rung, b.rungs))},))"
                for b in impl.bands
            )
            fields.append(f"bands=({bands},)")
        packs = {p.name: (p.format, per_text(p.granularity)) for p in impl.packs if quantised(p)}
        if packs:
            fields.append(f"packs={pyrepr(packs)}")
        at_call = [f"{pyrepr(s.name)}: {self.scale(s)}" for s in impl.scales if not s.measured]
        if at_call:
            fields.append(f"at_call={{{', '.join(at_call)}}}")
        points = {point.name for point in self.structure.points}
        stores = {name: dtype for name, dtype in impl.numerics.stores if name in points}
        if stores:
            fields.append(f"stores={pyrepr(stores)}")
        if impl.params:
            fields.append(f"params={pyrepr({p.name: p.default for p in impl.params})}")
        if self.rungs.asked:
            fields.append(f"sizes={pyrepr(self.rungs.asked)}")
        if impl.needs:
            needs = ", ".join(self.need(need) for need in impl.needs)
            fields.append(f"needs=({needs},)")
        if impl.gates:
            gates = ", ".join(f"{pyrepr(g.kind)}: {bounds_text(g.metrics)}" for g in impl.gates)
            fields.append(f"gates={{{gates}}}")
        if self.rungs.called:
            fields.append(f"parts={pyrepr(tuple(item.name for item in self.rungs.called))}")
        if impl.wire is not None:
            fields.append(f"wire={pyrepr(impl.wire)}")
        if impl.status.name == "imported":
            fields.append(f"imported={text_literal(impl.status.reason or 'not verified')}")
        return fields

    def scale(self, scale: Scale) -> str:
        """``ScaleSpec("x_in", "fp8_e4m3", "tensor")``"""
        args = (scale.point, scale.format or scale.kind, per_text(scale.granularity))
        return call("ScaleSpec", *map(pyrepr, args)).text

    def need(self, need: Need) -> str:
        """``Need(divides(16, D), "pack down per block 16")``"""
        why = () if need.why is None else (pyrepr(need.why),)
        return call("Need", self.names.rule(need.rule), *why).text

    def rung(self, rung: Rung) -> str:
        """``RungSpec("hub", run="run_hub", …)``"""
        named: dict[str, Py | str] = {"run": pyrepr(self.rungs.runs[id(rung)])}
        if rung.package is not None:
            named["package"] = pyrepr(rung.package)
        if rung.version is not None:
            named["version"] = pyrepr(rung.version)
        if rung.entries:
            named["entries"] = pyrepr(rung.entries)
        if rung.prepared:
            named["prepare"] = pyrepr(self.rungs.prepares(rung))
        if rung.envelope:
            named["envelope"] = self.names.rules(rung.envelope)
        if rung.only:
            named["only"] = pyrepr(dict(rung.only))
        without = self.rungs.without(rung)
        if without:
            named["without"] = pyrepr(without)
        return call("RungSpec", pyrepr(rung.kind), *(), **named).text


def per_text(grain: Granularity | None) -> str:
    """``block 16``"""
    kind, size = grain or ("tensor", None)
    return kind if size is None else f"{kind} {size}"
