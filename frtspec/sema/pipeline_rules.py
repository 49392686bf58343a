"""Rules of a pipeline and its gates: each rule has one check that can be about its subjects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from frtspec.ir import decl as ir
from frtspec.ir import pipewords
from frtspec.sema.common import named_once, one_of
from frtspec.sema.context import Context, listing
from frtspec.sema.sizes import short
from frtspec.syntax import ast

RULE, GATE = "FRT0716", "FRT0717"


@dataclass
class Rules:
    """Reads the rules and gates of a pipeline whose other parts are built."""

    context: Context
    pipeline: ir.Pipeline
    node: ast.PipelineDecl

    def finished(
        self, rules: Sequence[ast.ConformDecl], gates: Sequence[ast.PipelineGateDecl]
    ) -> ir.Pipeline:
        """The pipeline with its rules and gates."""
        named_once(self.context, "rule", [rule.name for rule in rules])
        self.pipeline = dataclasses.replace(self.pipeline, gates=self.gates(gates))
        conform = tuple(c for c in map(self.rule, rules) if c is not None)
        return dataclasses.replace(self.pipeline, conform=conform)

    # ------------------------------------------------------------ rules

    def rule(self, node: ast.ConformDecl) -> ir.Conform | None:
        name = one_of(self.context, "check", node.check, pipewords.CHECKS)
        if name is None:
            return None
        check = pipewords.CHECKS[name]
        wanted = list(check.subjects)
        if check.many:
            wanted += [wanted[-1]] * (len(node.subjects) - len(wanted))
        if len(node.subjects) != len(wanted):
            takes = " and ".join(check.subjects) or "nothing"
            more = ", or several" if check.many else ""
            message = f"check `{name}` is about {takes}{more}; {len(node.subjects)} are named here"
            self.wrong(node, message, f"write `{_written(name)}`")
            return None
        named_once(self.context, "subject", node.subjects)
        known = [self.subject(*pair) for pair in zip(node.subjects, wanted, strict=True)]
        if all(known):
            fault = _FITS.get(name, _fits)(self.pipeline, [s.id for s in node.subjects])
            if fault is not None and not self.context.dropped and not self.context.guessing:
                self.wrong(node, *fault)
        return ir.Conform(node.name.id, name, tuple(s.id for s in node.subjects), node.name.span)

    def wrong(self, node: ast.ConformDecl, message: str, help: str) -> None:
        self.context.error(RULE, message, node.check.span, help=help)

    def subject(self, name: ast.Name, kind: str) -> bool:
        """Whether a name is one of the kinds that a check is about."""
        tables = {
            "window": [w.name for w in self.pipeline.windows],
            "buffer": [b.name for b in self.pipeline.buffers],
            "state": [s.name for s in self.pipeline.states],
            "stage": [s.name for s in self.pipeline.stages],
            "loop": [item.name for item in self.pipeline.loops],
            "cadence": list(pipewords.CADENCES),
        }
        known = [name for word in kind.split(" or ") for name in tables[word]]
        if name.id in known:
            return True
        code = "FRT0902" if kind == "stage" else "FRT0201"
        self.context.unknown(kind, name, dict.fromkeys(known), code=code)
        return False

    # ------------------------------------------------------------ gates

    def gates(self, nodes: Sequence[ast.PipelineGateDecl]) -> tuple[ir.PipelineGate, ...]:
        out: dict[str, ir.PipelineGate] = {}
        for node in nodes:
            kind = one_of(self.context, "gate", node.kind, pipewords.GATES)
            if kind is None:
                continue
            if kind in out:
                message = f"gate {kind} is given twice"
                self.context.error("FRT0208", message, node.kind.span)
            if node.including is not None:
                message = f"`including` has no meaning in a gate {kind}"
                self.context.error(GATE, message, node.including.span)
            gate = self.parity(node) if kind == "parity" else self.net_win(node)
            out.setdefault(kind, gate)
        if "parity" not in out and not self.context.dropped:
            self.context.error(
                GATE,
                f"nothing judges what pipeline `{self.node.name.id}` puts out",
                self.node.name.span,
                help="add: gate parity on logits { cosine >= 0.999, against (…) }",
            )
        return tuple(out.values())

    def parity(self, node: ast.PipelineGateDecl) -> ir.PipelineGate:
        flows = [value.name for value in self.pipeline.flows]
        for name in node.on:
            if name.id not in flows:
                self.context.unknown("window or buffer", name, flows)
            elif not any(use.writes for _, use in self.pipeline.accesses(name.id)):
                message = f"no stage writes `{name.id}`: there is nothing to compare"
                self.context.error(GATE, message, name.span)
        named_once(self.context, "output", node.on)
        if not node.on:
            help = "write `gate parity on logits { … }`"
            self.context.error(GATE, "this gate is on no output", node.kind.span, help=help)
        if node.per is not None:
            message = "`per` has no meaning in a gate parity"
            self.context.error(GATE, message, node.per.span)
        metrics = self.metrics(node, pipewords.PARITY_METRICS)
        if not any(m.op for m in metrics) and not self.context.dropped:
            message = "this gate judges nothing: no metric has a bound"
            help = "write one, such as `cosine >= 0.999`"
            self.context.error(GATE, message, node.span, help=help)
        against = self.baseline(node, pipewords.PARITY_BASELINES)
        on = tuple(dict.fromkeys(n.id for n in node.on))
        return ir.PipelineGate("parity", on, None, metrics, against, node.kind.span)

    def net_win(self, node: ast.PipelineGateDecl) -> ir.PipelineGate:
        for name in node.on[:1]:
            message = "`on` has no meaning in a gate net_win"
            self.context.error(GATE, message, name.span, help="times are judged `per` a cadence")
        per = None
        if node.per is None:
            help = "write `gate net_win per request { … }`"
            self.context.error(GATE, "this gate does not say per what", node.kind.span, help=help)
        else:
            per = one_of(self.context, "cadence", node.per, pipewords.CADENCES)
        metrics = self.metrics(node, pipewords.WIN_METRICS)
        for metric in metrics:
            needs_loop = metric.metric in ("ttft", "tpot", "step_latency")
            if needs_loop and not self.pipeline.loops:
                message = f"`{metric.metric}` is about a loop, and there is none"
                self.context.error(GATE, message, metric.span)
        against = self.baseline(node, pipewords.WIN_BASELINES)
        return ir.PipelineGate("net_win", (), per, metrics, against, node.kind.span)

    def baseline(self, node: ast.PipelineGateDecl, known: Sequence[str]) -> tuple[str, ...]:
        found = [one_of(self.context, "baseline", name, known) for name in node.against]
        if len(node.against) != 1:
            message = f"gate {node.kind.id} is against one baseline"
            help = f"write `against ({known[0]})` in its braces; the baselines are {listing(known)}"
            self.context.error(GATE, message, node.kind.span, help=help)
        return tuple(name for name in found if name is not None)

    def metrics(
        self, node: ast.PipelineGateDecl, known: dict[str, tuple[str, str]] | dict[str, str]
    ) -> tuple[ir.MetricBound, ...]:
        named_once(self.context, "metric", [m.name for m in node.metrics])
        out = []
        for metric in node.metrics:
            name = one_of(self.context, "metric", metric.name, known)
            if name is None:
                continue
            row = known[name]
            if metric.op is not None and metric.bound is not None:
                self.bound(name, row[0] if isinstance(row, tuple) else None, metric)
            value = None if metric.bound is None else metric.bound.value
            out.append(ir.MetricBound(name, metric.op, value, metric.span))
        return tuple(out)

    def bound(self, name: str, way: str | None, metric: ast.Metric) -> None:
        assert metric.bound is not None
        text = short(metric.bound.text)
        if way is None:
            message, help = f"`{name}` takes no bound: the faster side wins", "leave it out"
        elif metric.op != way:
            better = "larger" if way == ">=" else "smaller"
            message = f"`{name}` is bound the wrong way: {better} is better"
            help = f"write {name} {way} {text}"
        elif way == ">=" and not 0 < metric.bound.value <= 1:
            message, help = f"`{name}` lies between 0 and 1, not at {text}", "write a share"
        else:
            return
        self.context.error(GATE, message, metric.span, help=help)


def _written(name: str) -> str:
    check = pipewords.CHECKS[name]
    subjects = ", ".join(word.upper() for word in check.subjects)
    return f"{name} ({subjects}{', …' if check.many else ''})" if subjects else name


# ---------------------------------------------------------------- whether a check fits

Fault = tuple[str, str] | None


def _fits(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    return None


def _writers(pipeline: ir.Pipeline, name: str) -> list[ir.Stage]:
    return [stage for stage, use in pipeline.accesses(name) if use.writes]


def _explicit(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    for window in pipeline.windows:
        if window.name in subjects and (not window.caller or window.mode == "readback"):
            return (
                f"window `{window.name}` is not the caller's: its content cannot be set",
                f"declare it `window {window.name} : swap from caller`",
            )
    return None


def _read_only(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    for name in subjects:
        inside = [s.name for s, _ in pipeline.accesses(name) if pipeline.loop_of(s.name)]
        if not inside:
            return f"no loop reads `{name}`", "the check is about what stages of a loop read"
        writers = [s.name for s in _writers(pipeline, name) if pipeline.loop_of(s.name)]
        if writers:
            help = "leave the access or the rule out"
            return f"stage `{writers[0]}` writes `{name}` inside a loop", help
    return None


def _populated(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    for name in subjects:
        if all(pipeline.loop_of(stage.name) for stage in _writers(pipeline, name)):
            return f"no stage before a loop writes `{name}`", "let one write it"
        inside = [s for s, use in pipeline.accesses(name) if use.reads and pipeline.loop_of(s.name)]
        if not inside:
            return f"no loop reads `{name}`", "the check is about what stages of a loop read"
    return None


def _has_writers(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    for name in subjects:
        if not _writers(pipeline, name):
            return f"no stage writes `{name}`", "let one write it, or leave the rule out"
    return None


def _only_in(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    value, *stages = subjects
    others = [s.name for s in _writers(pipeline, value) if s.name not in stages]
    if others:
        return f"stage `{others[0]}` writes `{value}`, too", "name every stage that writes it"
    return _has_writers(pipeline, [value])


def _only_at(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    value, cadence = subjects
    for stage in _writers(pipeline, value):
        if stage.cadence != cadence:
            return (
                f"stage `{stage.name}` writes `{value}` and runs at cadence {stage.cadence}",
                "name the cadence of the stages that write it",
            )
    return _has_writers(pipeline, [value])


def _fixed(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    for loop in pipeline.loops:
        if loop.name in subjects and (loop.shapes != "fixed" or loop.until is not None):
            why = "may end early" if loop.until is not None else "leaves its shapes to the host"
            return f"loop `{loop.name}` {why}: it is not fixed", "write `shapes fixed`, no `until`"
    return None


def _static(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    modes = {value.name: value.mode for value in pipeline.flows}
    for name in subjects:
        if modes[name] not in ("static", "swap", "staged"):
            return (
                f"`{name}` is {modes[name]}: nothing says that it stays where it is",
                "the check is about static buffers and about swap and staged windows",
            )
    return None


def _gated(pipeline: ir.Pipeline, subjects: Sequence[str]) -> Fault:
    if any(gate.kind == "parity" and any(m.op for m in gate.metrics) for gate in pipeline.gates):
        return None
    return "no parity gate can accept a skipped step", "add a gate parity with a bound"


_FITS: dict[str, Callable[[ir.Pipeline, Sequence[str]], Fault]] = {
    "explicit_window": _explicit,
    "read_only_in_loop": _read_only,
    "populated_before_loop": _populated,
    "declared_writers": _has_writers,
    "changes_only_in": _only_in,
    "changes_only_at": _only_at,
    "fixed_loop": _fixed,
    "static_storage": _static,
    "skips_gated": _gated,
}
