"""Writes the tables of the docs from the compiler's and the runtime's own registries.

    python docs/tables.py [--check]

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``. ``--check`` writes
nothing and exits 1 where a table is not what the registries say.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from frtspec.diag.codes import codes
from frtspec.diag.codes_types import PHASE_OF_RANGE
from frtspec.diff.rules import RULES
from frtspec.ir import pipewords, words
from frtspec.ir.consumers import CONSUMERS, MISSING, NONE
from frtspec.ir.measured import FACTS, MECHANISMS
from frtspec.ir.ops import OPS, TORCH_LOWERINGS
from frtspec.ir.rolekinds import ROLE_KINDS
from frtspec.ir.stepops import STEP_OPS
from frtspec.ir.types import DTYPES
from frtspec.sema import binding as bindings
from frtspec.sema import combos, composition, sizes
from frtspec.syntax import build_base, parse, prune
from frtspec.syntax.grammar import RESERVED, grammar_text

DOCS = Path(__file__).resolve().parent
PAGES = (
    *("commands.md", "hosts.md", "language.md", "runtime.md", "errors.md", "scan.md"),
    "rules.md",
)
_TABLE = re.compile(r"(<!-- table: (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_KEYWORD = re.compile(r'(?<!/)"([a-z][a-z_0-9]*)"')


def rendered(text: str) -> str:
    """The page with every table written anew. Raises ``KeyError`` for an unknown table."""
    return _TABLE.sub(lambda m: f"{m[1]}\n{TABLES[m['name']]()}\n\n{m[3]}", text)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [[cell.replace("|", "\\|") for cell in line] for line in (head, *rows)]
    lines.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


def _words(head: tuple[str, str], table: dict[str, str]) -> str:
    return grid(head, [(code(name), doc) for name, doc in table.items()])


# ---------------------------------------------------------------- the language


def keywords() -> str:
    """Every word that the grammar gives a meaning, in alphabetical order."""
    found = sorted(set(_KEYWORD.findall(_rules())) - set(RESERVED))
    return "```text\n" + _wrapped(found) + "\n```"


def _rules() -> str:
    """The grammar without its comments."""
    return "\n".join(line.partition("//")[0] for line in grammar_text().splitlines())


def _wrapped(names: Sequence[str], width: int = 92) -> str:
    lines, line = [], ""
    for name in names:
        if line and len(line) + 2 + len(name) > width:
            lines.append(line)
            line = ""
        line += ("  " if line else "") + name
    return "\n".join([*lines, line])


def ops() -> str:
    """The op table: how an op is written and what it is."""
    rows = []
    for op in OPS.values():
        written = op.signature
        if op.name == "part":
            written = "attn(x, …)"
        elif op.symbol == "[]":
            written = "x[…]"
        elif op.symbol is not None:
            written = f" {op.symbol} ".join(param.name for param in op.params)
            written = written if len(op.params) > 1 else op.symbol + written
        rows.append((code(op.name), code(written), op.doc))
    return grid(("op", "written", "is"), rows)


def lowerings() -> str:
    rows = [(code(to), ", ".join(map(code, of))) for to, of in TORCH_LOWERINGS.items()]
    return grid(("`lower … to`", "stands for"), rows)


def step_ops() -> str:
    """What stands between a kernel's entries, beside the ops of a reference."""
    return grid(("op", "gives"), [(code(how), gives) for how, gives in STEP_OPS.values()])


def granularities() -> str:
    """Format -> how packs, static and dynamic scales of it can be cut."""

    def cell(table: words.Granularities, format: str) -> str:
        ways = table.get(format, {})
        return ", ".join(
            code(f"per {kind} {size}".rstrip()) for kind, of in ways.items() for size in of or ("",)
        )

    kinds = (words.PACK_GRANULARITIES, words.STATIC_GRANULARITIES, words.DYNAMIC_GRANULARITIES)
    rows = [(code(name), *(cell(table, name) for table in kinds)) for name in words.FORMATS]
    return grid(("format", "a pack", "`static`", "`dynamic`"), rows)


def dtypes() -> str:
    rows = [
        (code(name), "the model's own dtype" if name == "host" else kind, str(bits or ""))
        for name, (kind, bits) in DTYPES.items()
    ]
    return grid(("dtype", "kind", "bits"), rows)


def metrics() -> str:
    rows = [(code(name), code(op), doc) for name, (op, doc) in words.METRICS.items()]
    return grid(("metric", "bound", "is"), rows)


def statistics() -> str:
    rows = [
        (code(name), ", ".join(code(f"per {per}") for per in pers), doc)
        for name, (pers, doc) in words.STATISTICS.items()
    ]
    return grid(("statistic", "granularity", "is"), rows)


def amounts() -> str:
    """What a decision compares, with the statistic that an amount of a point is made of."""
    rows = []
    for name, (arguments, what) in words.AMOUNTS.items():
        stat, grains = words.AMOUNT_NEEDS.get(name, ("", ()))
        written = f"{name}({', '.join('M' if a == 'rows' else a for a in arguments)})"
        needs = " or ".join(code(f"{stat} per {grain}") for grain in grains)
        needs = code("amax") if grains == ("tensor",) and stat == "amax" else needs
        rows.append((code(written), needs, what))
    rows.append((code("capability"), "", "the CUDA compute capability, 0 without such a device"))
    rows.append((code("D"), "", "a size of the seat, by its dim"))
    return grid(("amount", "measured", "is"), rows)


def routes() -> str:
    rows = [
        (code(name), doc, ", ".join(code(arg) for arg in args))
        for name, (_, _, args, doc) in words.ROUTES.items()
    ]
    return grid(("function", "is", "is handed"), rows)


def lookups() -> str:
    rows = [(code(name), words.LOOKUPS[name]) for name in words.DECLARED_LOOKUPS]
    return grid(("`via =`", "the host finds it"), rows)


def views() -> str:
    rows = [
        (code(name), str(least) if least == most else f"{least} to {most}", doc)
        for name, (least, most, doc) in words.VIEWS.items()
    ]
    return grid(("view", "arguments after the path", "is"), rows)


def exports() -> str:
    rows = [
        (code(catalog), code(f"{key}[…]" if one else key), what)
        for catalog, keys in words.EXPORTS.items()
        for key, (one, what) in keys.items()
    ]
    return grid(("catalog", "entry", "is"), rows)


def facts() -> str:
    rows = [(code(name), values, doc) for name, (values, doc) in words.FACTS.items()]
    return grid(("fact", "values", "says that"), rows)


def pipeline_words() -> str:
    """The closed lists of words of pipelines, and what each means."""
    lists = {
        "family": pipewords.FAMILIES,
        "cadence": pipewords.CADENCES,
        "window": pipewords.WINDOWS,
        "buffer": pipewords.BUFFERS,
        "`capture` of a stage": pipewords.CAPTURES,
        "`capture` on a host": pipewords.BOUND_CAPTURES,
        "shapes": pipewords.SHAPES,
        "policy": pipewords.POLICIES,
        "protect": pipewords.PROTECTIONS,
        "segment": pipewords.SEGMENTS,
        "`against` of a gate": pipewords.BASELINES,
        "metric of net_win": pipewords.WIN_METRICS,
        "metric of parity": {
            k: f"{doc} (`{op}`)" for k, (op, doc) in pipewords.PARITY_METRICS.items()
        },
    }
    rows = [
        (what if number == 0 else "", code(word), doc)
        for what, table in lists.items()
        for number, (word, doc) in enumerate(table.items())
    ]
    return grid(("list", "word", "is"), rows)


def trace_checks() -> str:
    """The checks that a rule of a pipeline can name."""
    rows = []
    for name, check in pipewords.CHECKS.items():
        subjects = ", ".join(check.subjects) + (", …" if check.many else "")
        rows.append((code(name), subjects, check.doc))
    return grid(("check", "about", "holds that"), rows)


def measured() -> str:
    """Every fact that a rule can ask of a host."""
    about = {"seat": "the seat", "content": "a content point", "value": "an input or a point"}
    about |= {"slot": "a slot", "state": "an input that an output updates"}
    rows = [
        (
            code(name if fact.of == "seat" else f"{name}(…)"),
            about[fact.of],
            fact.text + (f": {' or '.join(map(code, fact.words))}" if fact.words else ""),
            fact.where,
        )
        for name, fact in FACTS.items()
    ]
    return grid(("fact", "about", "is", "measured"), rows)


def unsupported() -> str:
    """What checks and has no generator yet."""
    return "\n".join(f"- {row.what}" for row in MISSING)


CONSTRUCTS = {
    "structure": ("StructureDecl",),
    "status": ("StatusDecl",),
    "evidence": ("EvidenceDecl",),
    "dim": ("DimDecl",),
    "index": ("IndexDecl",),
    "param": ("ParamDecl", "ParamSet"),
    "in, out": ("PortDecl",),
    "slot": ("SlotDecl", "SlotMap"),
    "part": ("PartDecl", "PartMap"),
    "variant": ("VariantDecl", "VariantSet"),
    "combinations": ("CombinationsDecl",),
    "point": ("PointDecl", "PointMap"),
    "reference": ("ReferenceDecl", "LetStmt", "EachStmt", "ScanStmt"),
    "seam": ("SeamDecl",),
    "gate": ("GateDecl",),
    "discover": ("DiscoverDecl",),
    "role": ("RoleDecl", "TellsDecl", "CalledDecl"),
    "qualify": ("QualifyDecl",),
    "require": ("RequireDecl",),
    "impl": ("ImplDecl",),
    "pack": ("PackDecl",),
    "scale": ("ScaleDecl",),
    "numerics": ("NumericsDecl",),
    "admits": ("AdmitsDecl",),
    "only": ("OnlyDecl",),
    "rung": ("RungDecl",),
    "envelope": ("EnvelopeDecl",),
    "prepare": ("StepDecl",),
    "call": ("CallDecl", "CallStepsDecl"),
    "lower": ("LowerDecl",),
    "band": ("BandDecl",),
    "scheme": ("SchemeDecl",),
    "at": ("AtDecl", "StatRequest"),
    "otherwise keep": ("OtherwiseKeepDecl",),
    "auto": ("AutoDecl",),
    "binding": ("BindingDecl",),
    "host": ("HostDecl",),
    "dims": ("DimsDecl",),
    "each": ("EachDecl",),
    "seat": ("SeatDecl",),
    "boundary": ("BoundaryDecl",),
    "expect": ("ExpectDecl",),
    "siblings": ("SiblingsDecl",),
    "form": ("FormDecl",),
    "chain": ("ChainDecl",),
    "group": ("GroupDecl",),
    "export": ("ExportDecl", "ExportItem"),
    "pipeline": ("PipelineDecl", "PipelineUse"),
    "family": ("FamilyDecl",),
    "window, buffer": ("WindowDecl", "BufferDecl"),
    "state": ("StateDecl",),
    "stage": ("StageDecl", "StageUse"),
    "cadence": ("CadenceDecl", "CadenceUse"),
    "read, write": ("AccessDecl",),
    "capture": ("CaptureDecl",),
    "loop": ("LoopDecl", "LoopUse", "StepsDecl", "UntilDecl", "ShapesDecl", "RunsDecl"),
    "embeds": ("EmbedsDecl",),
    "substructure": ("SubstructureDecl",),
    "conform": ("ConformDecl",),
    "gate of a pipeline": ("PipelineGateDecl",),
    "policy, protect": ("PolicyDecl", "ProtectDecl"),
    "coverage": (
        "CoverageDecl",
        "HotPathDecl",
        "SegmentDecl",
        "CoversDecl",
        "SeatsDecl",
    ),
}
"""Keyword -> the classes of its syntax tree."""


def consumers() -> str:
    """What reads each construct, from the registry of consumers."""
    rows = []
    for keyword, classes in CONSTRUCTS.items():
        readers = dict.fromkeys(name for cls in classes for name in CONSUMERS[cls].values())
        shown = [_FILE.sub(r"`\1`", name) for name in readers if name != NONE]
        if NONE in readers:
            shown.append("the rest not supported yet" if shown else "not supported yet")
        rows.append((code(keyword), "; ".join(shown)))
    return grid(("construct", "read by"), rows)


_FILE = re.compile(r"(\S*(?:/|\(\))[^\s:;,]*)")
"""A file of a generated package, or a function in one."""


# ---------------------------------------------------------------- commands


def commands() -> str:
    """Every command with its options, from the parsers."""
    from frtspec.cli.commands import parser
    from frtspec.live.demo import _parser as demo_parser

    (subparsers,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    summaries = {choice.dest: choice.help or "" for choice in subparsers._choices_actions}
    parsers = {**subparsers.choices, "demo": demo_parser()}
    rows = []
    for name, summary in summaries.items():
        options = [
            code(action.option_strings[-1] + (f" {action.metavar}" if action.metavar else ""))
            for action in parsers[name]._actions
            if action.option_strings and action.dest != "help"
        ]
        rows.append((code(name), summary, ", ".join(options)))
    return grid(("command", "does", "options"), rows)


# ---------------------------------------------------------------- the catalog


def hosts() -> str:
    """Each host family that bindings of our own are for, with what sits on it."""
    from frtspec.config import load_config
    from frtspec.project import load, select

    rows = []
    here = Path.cwd()
    program = load(select([], load_config(here).config, here)).program
    for binding in program.bindings.values():
        if binding.origin.path.startswith("bindings/flash_rt/"):
            continue
        seats: dict[str, list[str]] = {}
        for seat in (seat for group in binding.groups for seat in group.seats):
            target = f"{seat.structure[0]}.{seat.seam}" if seat.seam else seat.structure[0]
            seats.setdefault(target, []).append(seat.name)
        shown = "; ".join(f"{target}: {', '.join(names)}" for target, names in seats.items())
        host = binding.hosts[0]
        rows.append((code(binding.name), f"`{host.package}` {host.versions or ''}", shown))
    return grid(("binding", "host", "structures and the seats on them"), rows)


# ---------------------------------------------------------------- the runtime


def options() -> str:
    """The options of ``attach`` with their defaults, from where they are declared."""
    from dataclasses import MISSING, fields

    from frtspec.runtime.options import AttachOptions, BuildOptions, Options, Sources

    defaults = {
        field.name: field.default if field.default is not MISSING else None
        for kind in (Options, Sources)
        for field in fields(kind)
    }
    rows, listed = [], set()
    for declared in (BuildOptions, AttachOptions):
        for names, text in _paragraphs(inspect.getdoc(declared) or ""):
            mine = [name for name in names if name in defaults]
            listed.update(mine)
            if mine:
                told = ", ".join(code(_literal(defaults[name])) for name in mine)
                rows.append((", ".join(map(code, mine)), told, text))
    if missing := [name for name in defaults if name not in listed]:
        raise KeyError(f"the options do not say what {', '.join(missing)} is")
    return grid(("option", "default", "is"), rows)


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _paragraphs(doc: str) -> list[tuple[list[str], str]]:
    """``name   text`` of a docstring, with what is indented below it; ``a, b   text`` is
    about two names."""
    found: list[tuple[list[str], str]] = []
    for line in doc.replace("``", "`").splitlines():
        head = re.match(r"(\w+(?:, \w+)*)\s{2,}(\S.*)", line)
        if head:
            found.append((head[1].split(", "), head[2]))
        elif line.startswith(" ") and found:
            names, text = found.pop()
            found.append((names, f"{text} {line.strip()}"))
    return found


def checks() -> str:
    from frtspec.runtime.seats.guard import CHECKS

    rows = [
        (code(check.name), CHECK_DOCS[check.name], "yes" if check.traced else "no")
        for check in CHECKS
    ]
    return grid(("check", "holds when", "asked under torch.compile"), rows)


CHECK_DOCS = {
    "arguments": "only the arguments that the bound form takes are given, as plain tensors",
    "device": "every input is on the device of the packs",
    "dtype": "the input's dtype is one that calibration saw",
    "autocast": "autocast is on or off as it was then",
    "width": "the last axis has the bound width",
    "rows": "the row count lies in a band of the impl",
    "training": "no replaced module is in training mode",
    "hooks": "no hook sits on a module inside, which the bound form would not call",
    "grad": "no gradient is recorded",
    "weights": "the packed weights are the same objects, unchanged",
}


def bands() -> str:
    from frtspec.runtime.gating.metrics import BANDS

    rows = [
        (OUTPUT_DOCS[kind], code(band.metric), f"{band.good:g}", f"{band.warn:g}")
        for kind, band in BANDS.items()
    ]
    return grid(("output", "metric", "`pass` from", "`warn` from"), rows)


OUTPUT_DOCS = {"values": "tensors", "distribution": "logits"}


def host_metrics() -> str:
    from frtspec.runtime.gating.metrics import HIGHER, KINDS, LOWER

    docs = HIGHER | LOWER
    rows = [
        (code(name), ", ".join(OUTPUT_DOCS[kind] for kind in KINDS if name in KINDS[kind]), doc)
        for name, doc in docs.items()
    ]
    return grid(("metric", "for", "is"), rows)


# ---------------------------------------------------------------- codes


def code_list() -> str:
    """Every code with its title, by phase."""
    phases = dict.fromkeys(PHASE_OF_RANGE.values())
    parts = []
    for phase in phases:
        rows = [(code(c.id), c.title) for c in codes().values() if c.phase == phase]
        if rows:
            parts.append(f"### {PHASE_TITLES[phase]}\n\n{grid(('code', 'is'), rows)}")
    return "\n\n".join(parts)


def reasons() -> str:
    """Why a module is in no seat."""
    from frtspec.live.scan.reasons import REASONS

    return _words(("code", "says that"), REASONS)


def roles() -> str:
    """What a role can be, its parameters in order, and what is told of it by value."""
    rows = [
        (
            code(name),
            kind.what,
            ", ".join(map(code, kind.facts)),
            code(kind.number) if kind.number else "",
        )
        for name, kind in ROLE_KINDS.items()
    ]
    return grid(("kind", "is", "tells", "gives"), rows)


def limits() -> str:
    """How much of each thing a file can say."""
    rows = [
        ("structures in one, on all levels together", composition.MOST),
        ("combinations of variants of a structure", combos.MOST),
        ("numbers in a range of `each` that is written out", bindings.MOST_PLACES),
        ("a number in a dim", sizes.LARGEST),
        ("terms of a dim that is multiplied out", sizes.MOST_TERMS),
        ("power of a dim", sizes.MOST_POWER),
        ("expressions in each other", prune.DEEPEST),
        ("digits of a number", build_base.MAX_DIGITS),
        ("syntax errors that are told of one file", parse.MAX_ERRORS),
    ]
    return grid(("of", "at most"), [(what, f"{most:,}") for what, most in rows])


PHASE_TITLES = {
    "source": "Reading files",
    "syntax": "Syntax",
    "names": "Names",
    "types": "Types, dims and dataflow",
    "impls": "Impls",
    "schemes": "Schemes",
    "bindings": "Bindings",
    "unsupported": "Unsupported",
    "tool": "Commands, configuration, lock",
    "pipelines": "Pipelines",
    "diff": "Versions",
    "discovery": "Discovery",
}


def rules() -> str:
    """Every rule of `frtspec diff`, from its registry."""
    rows = []
    for rule in RULES.values():
        marks = [
            word
            for word, is_so in (
                ("reviewed", rule.reviewed),
                ("re-qualify", rule.requalify),
                ("never accepted", not rule.acceptable),
            )
            if is_so
        ]
        levels = (rule.providers.name.lower(), rule.consumers.name.lower())
        rows.append((code(rule.id), rule.what, *levels, ", ".join(marks), rule.why, rule.fix))
    head = ("rule", "what changed", "providers", "consumers", "", "why", "what to do")
    return grid(head, rows)


TABLES: dict[str, Callable[[], str]] = {
    "rules": rules,
    "keywords": keywords,
    "ops": ops,
    "lowerings": lowerings,
    "step_ops": step_ops,
    "dtypes": dtypes,
    "metrics": metrics,
    "statistics": statistics,
    "amounts": amounts,
    "views": views,
    "facts": facts,
    "measured": measured,
    "mechanisms": lambda: _words(("form", "is"), MECHANISMS),
    "pipeline_words": pipeline_words,
    "trace_checks": trace_checks,
    "unsupported": unsupported,
    "consumers": consumers,
    "commands": commands,
    "hosts": hosts,
    "options": options,
    "checks": checks,
    "bands": bands,
    "host_metrics": host_metrics,
    "codes": code_list,
    "limits": limits,
    "reasons": reasons,
    "roles": roles,
    "statuses": lambda: _words(("status", "means"), words.STATUSES),
    "point_kinds": lambda: _words(("kind", "is"), words.POINT_KINDS),
    "baselines": lambda: grid(
        ("baseline", "is", "can run"), [(f"`{n}`", *row) for n, row in words.BASELINES.items()]
    ),
    "formats": lambda: _words(("format", "is"), words.FORMATS),
    "granularities": granularities,
    "granularities_are": lambda: _words(("`per …`", "is"), words.GRANULARITIES_ARE),
    "rungs": lambda: _words(("rung", "runs"), words.RUNGS),
    "numerics": lambda: _words(("word", "is"), words.NUMERICS),
    "scales": lambda: _words(("scale", "is"), words.SCALES),
    "layouts": lambda: _words(("layout", "is"), words.LAYOUTS),
    "forms": lambda: _words(("form", "is"), words.FORMS),
    "routes": routes,
    "lookups": lookups,
    "cadences": lambda: _words(("`cadence =`", "runs"), words.CADENCES),
    "port_layouts": lambda: _words(("layout", "the model has"), words.PORT_LAYOUTS),
    "wire_facts": lambda: _words(("of a chain", "means"), words.WIRE_FACTS),
    "group_facts": lambda: _words(("of a group", "means"), words.GROUP_FACTS),
    "exports": exports,
    "proofs": lambda: _words(("`prove`", "means"), words.PROOFS),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 on a difference"
    )
    options = parser.parse_args()
    stale = []
    for name in PAGES:
        page = DOCS / name
        text = page.read_text(encoding="utf-8")
        new = rendered(text)
        if new != text:
            stale.append(name)
            if not options.check:
                page.write_text(new, encoding="utf-8")
    for name in stale:
        print(f"docs/{name}: {'tables are out of date' if options.check else 'written'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
