"""Every hub rung of the catalog with the calls that it can make, each tried against the contract
packages: found in the generated specs, so that a new rung is tried without being listed."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import torch
from flashrt_gen import gates
from torch import Tensor

from frtspec.dims import Constraint, Poly, at_least, at_most
from frtspec.runtime import BandSpec, BoundImpl, RungSpec, harness
from frtspec.runtime.gating.gates import chained, parity_bound
from frtspec.runtime.gating.metrics import row_distance, row_errors
from frtspec.runtime.rungs import kernels
from frtspec.runtime.rungs.probe import ROW, tolerance
from tests.codegen.test_catalog_impls import SMALLER, WIDE, catalog
from tests.contracts import staging

PARAMS = {"eps": 0.25}
"""Set in every case: random values are about 1, where a call that lost its eps would go unseen."""

GROUPED = {"Hq": 4, "Hkv": 2}
"""Heads that differ, wherever a structure has both: the generated sizes have what no kernel takes."""

_STEPS = (*(1 << power for power in range(17)), *range(64, 8193, 64))
"""Values that dims are tried at beside those near the given one and those that rules name."""

_CUTS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, eq=False)
class HubRung:
    """A hub rung of an impl, and the band of rows that it is for."""

    impl: type[BoundImpl]
    rung: RungSpec
    band: BandSpec | None = None

    @property
    def package(self) -> str:
        assert self.rung.package is not None
        return self.rung.package.partition("/")[2]

    @property
    def module(self) -> Any:
        """The generated gate harness of the structure."""
        spec = self.impl.SPEC
        return importlib.import_module(
            f"{gates.__name__}.{spec.structure}_v{spec.structure_version}"
        )

    def __str__(self) -> str:
        spec = self.impl.SPEC
        rows = "" if self.band is None else f"-{self.band.dim}{self.band.lo}"
        which = self.rung.run.removeprefix("run_hub").replace("_", "-")
        name = f"{spec.structure}_v{spec.structure_version}-{spec.name}"
        return f"{name}-{self.package}{rows}{which}"

    @functools.cache  # noqa: B019 - there are as many rungs as there are
    def cases(self) -> list[harness.Case]:
        """One case for each combination of variants and optional values that the rung serves,
        at the smallest sizes that it allows. A seam's form is told of the seam's own only."""
        spec = self.impl.SPEC
        found: dict[Any, harness.Case] = {}
        seam = None if spec.seam is None else self.module.SPEC.seams[spec.seam]
        for case in self.module.cases():
            only = (*spec.only.items(), *self.rung.only.items())
            if not all(case.variants[axis] in served for axis, served in only):
                continue
            if {*self.rung.without} & {*case.given}:
                continue
            chosen = [a for a in case.variants if seam is None or a in seam.variants]
            given = [name for name in case.given if seam is None or name in seam.slots]
            key = (tuple((axis, case.variants[axis]) for axis in chosen), tuple(given))
            start = {**case.sizes, **SMALLER.get(spec.structure, {})}
            start |= GROUPED if GROUPED.keys() <= start.keys() else {}
            made = replace(case, sizes=fitted(self.rules(), start))
            # Where two dims have one size, a call that takes one for the other goes unseen.
            known = found.get(key)
            if known is None or len({*known.sizes.values()}) < len({*made.sizes.values()}):
                found[key] = made
        return list(found.values())

    def rules(self) -> tuple[Constraint, ...]:
        spec, rows = self.impl.SPEC, []
        if self.band is not None:
            dim = Poly.symbol(self.band.dim)
            rows = [at_least(dim, self.band.lo)]
            rows += [] if self.band.hi is None else [at_most(dim, self.band.hi)]
        needs = [need.rule for need in spec.needs]
        return (*rows, *needs, *self.module.SPEC.requires, *self.rung.envelope)


@functools.cache
def hub_rungs() -> tuple[HubRung, ...]:
    """Every hub rung of every generated impl."""
    found: list[HubRung] = []
    for impl in catalog():
        spec = impl.SPEC
        found += [HubRung(impl, rung) for rung in spec.rungs if rung.kind == "hub"]
        for band in spec.bands:
            found += [HubRung(impl, rung, band) for rung in band.rungs if rung.kind == "hub"]
    return tuple(found)


# ---------------------------------------------------------------- sizes


def fitted(rules: Sequence[Constraint], sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes that obey every rule, each as near above the given one as the rules allow.

    Raises ValueError where no sizes are found.
    """
    found = dict(sizes)
    for _ in range(4 * len(rules) + 4):
        broken = next((rule for rule in rules if not rule.check(found)), None)
        if broken is None:
            return found
        found = _mended(broken, rules, found)
    raise ValueError(f"no sizes for {', '.join(rule.text for rule in rules)} from {dict(sizes)}")


def _mended(rule: Constraint, rules: Sequence[Constraint], sizes: dict[str, int]) -> dict[str, int]:
    """Sizes that obey one more rule: one dim changed, where it can be by the dim's own rules."""
    symbols = dict.fromkeys([*rule.subject.symbols(), *rule.symbols()])
    named = {arg.value({}) for one in rules for arg in one.args if not arg.symbols()}
    for symbol in symbols:
        own = [one for one in rules if one.symbols() == (symbol,)]
        start = sizes[symbol]
        values = {*range(1, 33), *range(start, start + 33), *sizes.values(), *_STEPS, *named}
        for value in sorted(values, key=lambda one: (one < start, abs(one - start))):
            tried = {**sizes, symbol: value}
            if all(one.check(tried) for one in (rule, *own)):
                return tried
    raise ValueError(f"{rule.text} can't be held from {sizes}")


# ---------------------------------------------------------------- one call


@dataclass
class Outcome:
    """What the calls of one case gave: how far each result is from the emulation."""

    typical: float = 0.0
    worst: float = 0.0
    calls: int = 0
    problems: list[str] = field(default_factory=list)
    verdict: str = ""

    def told(self, k: int, form: BoundImpl | type[BoundImpl]) -> str:
        """What is wrong, empty where nothing is. Held to the bounds of the runtime's probe and
        of its parity gate."""
        if self.problems:
            return "; ".join(self.problems)
        if not self.calls:
            return "the rung was not called"
        spec = form.SPEC
        allowed = parity_bound(k, chained=chained(spec))
        if chained(spec):
            allowed = WIDE.get(spec.structure, allowed)
        if not (self.typical <= min(allowed, tolerance(k)) and self.worst <= ROW):
            return f"values: {self.typical:.3g} away from the emulation ({allowed:.3g})"
        return "" if self.verdict.startswith("pass") else f"structure: {self.verdict}"


def planted(hub: HubRung, right: str, wrong: str) -> type[BoundImpl]:
    """The impl of a rung, generated with one text of the rung's own methods changed."""
    impl = hub.impl
    module = inspect.getmodule(impl)
    assert module is not None
    methods = [name for name in (hub.rung.run, hub.rung.prepare) if name is not None]
    source, changed = inspect.getsource(module), 0
    for name in methods:
        body = inspect.getsource(getattr(impl, name))
        assert source.count(body) == 1
        source = source.replace(body, body.replace(right, wrong))
        changed += body.count(right)
    if not changed:
        raise ValueError(f"{' and '.join(methods)} of {impl.__name__} do not hold {right!r}")
    made = ModuleType(module.__name__)
    exec(compile(source, f"<{impl.__name__} with a mistake>", "exec"), made.__dict__)  # noqa: S102 - generated here
    found: type[BoundImpl] = getattr(made, impl.__name__)
    return found


def kernel_of(rung: RungSpec) -> ModuleType:
    """The package of a rung as the runtime loads it."""
    assert rung.package is not None
    return kernels.load(rung.kind, rung.package, rung.version, rung.entries).module


def tried(
    hub: HubRung,
    case: harness.Case,
    *,
    compiled: bool = False,
    impl: type[BoundImpl] | None = None,
    dtype: torch.dtype | None = None,
    seed: int = 0,
) -> Outcome:
    """Run one case on a rung, each call beside the emulation of the impl.

    compiled  run it under torch.compile(fullgraph=True, backend="aot_eager") too: the same
              values have to come
    impl      another class in place of the rung's own, for calls with a mistake in them
    dtype     of the host; None: the first one that the impl admits
    """
    outcome = Outcome()
    own, form = hub.impl, impl or hub.impl
    kernel = kernel_of(hub.rung)
    method = getattr(form, hub.rung.run)

    def on(self: Any, rung: RungSpec, _: Any = None) -> Any:
        return form.on(self, hub.rung, kernel)

    @functools.wraps(method)
    def run(self: Any, *inputs: Any, **named: Any) -> Any:
        before = copied((inputs, named))
        wanted = own.run_emulate(self, *copied(inputs), **copied(named))  # type: ignore[attr-defined]
        traced = None
        if compiled:
            torch.compiler.reset()
            whole = torch.compile(
                functools.partial(method, self), fullgraph=True, backend="aot_eager"
            )
            traced = whole(*copied(inputs), **copied(named))
        found = method(self, *inputs, **named)
        _compare(outcome, found, wanted)
        if compiled:
            same = Outcome()
            _compare(same, traced, found)
            if same.problems or same.worst > 2.0**-7:
                outcome.problems.append(f"compiled: {same.problems or same.worst}")
        _unchanged(outcome, hub.module.SPEC, own, hub.rung, before, (inputs, named))
        outcome.calls += 1
        return found

    # The harness runs rungs without a package: this one is bound to it here.
    shown = replace(hub.rung, package=None, prepare=None)
    facts = replace(form.SPEC, rungs=(shown,), bands=())
    body = {"SPEC": facts, "on": on, hub.rung.run: run}
    tested = type(form.__name__, (form,), body)
    result = _judged(hub, case, tested, (dtype, seed), outcome)
    outcome.verdict = f"{result.verdict}: {result.reason}" if result else "raised"
    return outcome


def _judged(
    hub: HubRung,
    case: harness.Case,
    tested: type[BoundImpl],
    host: tuple[torch.dtype | None, int],
    outcome: Outcome,
) -> harness.Result | None:
    module = hub.module
    try:
        (result, *_) = harness.run(
            module.SPEC,
            [case],
            [tested],
            bounds=module.SPEC.boundary_gate,
            inner=getattr(module, "INNER", ({},)),
            params={name: value for name, value in PARAMS.items() if name in module.SPEC.params},
            rung="hub",
            dtype=host[0],
            seed=host[1],
        )
    except Exception as error:  # noqa: BLE001  (what a package refuses, or torch can't trace)
        kind = "contract" if type(error).__name__ == "ContractError" else type(error).__name__
        outcome.problems.append(f"{kind}: {error}")
        return None
    return result


def copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {name: copied(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(copied(one) for one in value)
    return value


def _compare(outcome: Outcome, found: Any, wanted: Any) -> None:
    ours, theirs = _listed(found), _listed(wanted)
    if len(ours) != len(theirs):
        outcome.problems.append(f"results: {len(ours)}, not {len(theirs)}")
        return
    for mine, other in zip(ours, theirs, strict=True):
        if mine is None or other is None:
            if mine is not other:
                outcome.problems.append("results: one is there and the other is not")
            continue
        if mine.shape != other.shape:
            outcome.problems.append(f"shape: {list(mine.shape)}, not {list(other.shape)}")
            continue
        if not bool(mine.float().isfinite().all()):
            outcome.problems.append("values: a NaN or an Inf")
            continue
        rows = [one.float().reshape(-1, one.shape[-1]) for one in (mine, other)]
        errors = row_errors(*rows)
        outcome.typical = max(outcome.typical, float(row_distance(errors)))
        outcome.worst = max(outcome.worst, float(errors.max()))


def _listed(value: Any) -> list[Tensor | None]:
    if value is None or isinstance(value, Tensor):
        return [value]
    return [one for item in value for one in _listed(item)]


def _unchanged(
    outcome: Outcome,
    spec: Any,
    impl: type[BoundImpl],
    rung: RungSpec,
    before: tuple[Any, Any],
    after: tuple[Any, Any],
) -> None:
    """A host's tensor is written only where the structure says so."""
    names = list(getattr(impl, rung.run).__code__.co_varnames[1:])
    allowed = set(spec.updates.values()) | set(spec.aliases.values())
    pairs = [*zip(names, before[0], after[0], strict=False)]
    pairs += [(name, before[1][name], after[1][name]) for name in before[1]]
    for name, old, new in pairs:
        for one, other in zip(_tensors(old), _tensors(new), strict=True):
            if name not in allowed and not torch.equal(_bytes(one), _bytes(other)):
                outcome.problems.append(f"written: {name}")


def _tensors(value: Any) -> list[Tensor]:
    return [one for one in _listed_or_none(value) if isinstance(one, Tensor)]


def _listed_or_none(value: Any) -> list[Any]:
    return _listed(value) if isinstance(value, (Tensor, list, tuple)) else []


def _bytes(value: Tensor) -> Tensor:
    return value.contiguous().view(torch.uint8) if value.dim() else value


# ---------------------------------------------------------------- packages


def versions() -> dict[str, int]:
    """The version that each contract package stands for."""
    found = {}
    for name in staging.names():
        text = (staging.HERE / name / staging.VARIANT / "metadata.json").read_text()
        found[name] = int(json.loads(text)["version"])
    return found


def name_of(value: Any) -> str:
    """Ids of pytest: a rung, and the variants of a case."""
    if isinstance(value, harness.Case):
        return _CUTS.sub("-", " ".join((*value.variants.values(), *value.given)))
    return str(value)
