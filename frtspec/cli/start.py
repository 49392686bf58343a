"""The starts that ``frtspec new`` writes."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from frtspec import start
from frtspec.cli.common import FINDINGS, OK, USAGE, refused, report
from frtspec.cli.named import UNKNOWN, keys_of, read
from frtspec.config import Config
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import NOWHERE, SourceFile, Span
from frtspec.diag.suggest import did_you_mean
from frtspec.files import write_atomically
from frtspec.ir.decl import Program
from frtspec.project import Loaded, shown
from frtspec.sema.scope import reserved
from frtspec.syntax.fmt import format_source
from frtspec.syntax.grammar import RESERVED

CANT = "FRT0951"
_TARGET = re.compile(r"(\w+)(?:\.(\w+))?(?:@([0-9]+))?\Z")
_DEFAULT = "linear_proj"


class _Cant(Exception):
    """``args``: message, help, code."""


def run(options: argparse.Namespace) -> int:
    """Writes the start of a structure, binding, scheme or impl into the project's first spec
    root. What does not check, or would overwrite a file, is not written."""
    given = read()
    if isinstance(given, int):
        return given
    loaded, config = given
    try:
        path, text = _begun(options, loaded, config)
    except _Cant as cant:
        message, help, code = cant.args
        report([Diagnostic(code, message, NOWHERE, help=help)], {})
        return USAGE if code == "usage" else FINDINGS
    name = shown(path, Path.cwd())
    if path.exists() or path.is_symlink():
        problem = Diagnostic(CANT, "something stands there already", Span(name, 0, 0))
        report([problem], {})
        return FINDINGS
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())
    except OSError as error:
        report([refused(name, error)], {})
        return FINDINGS
    print(f"{name}: {options.kind} {options.name}; `frtspec check {name}` as you go on")
    return OK


def _begun(options: argparse.Namespace, loaded: Loaded, config: Config) -> tuple[Path, str]:
    kind, name = options.kind, options.name
    why = reserved(name) or (None if re.fullmatch(r"[A-Za-z_]\w*", name) else "it is no name")
    if why is not None or name in RESERVED:
        message = f"{kind} cannot be called `{name}`"
        raise _Cant(message, why or "it is a word of the language", CANT)
    program = loaded.program
    target = None if kind == "structure" else _target(options.target or _DEFAULT, program)
    taken = keys_of(program, (kind,))
    if target is not None and kind == "impl":
        taken = {impl.name: ("impl", impl.name) for impl in target.impls(program)}
    if name in taken:
        help = "`frtspec new structure NAME --bump` begins its next version"
        raise _Cant(
            f"there is a {kind} `{name}` already", help if kind == "structure" else None, CANT
        )
    text, place = _text(kind, name, target, program)
    root = config.specs[0] if config.specs else Path.cwd() / "specs"
    source = SourceFile.from_text(place, text)
    made = format_source(source)
    problems = list(made.diagnostics) or _findings(source, loaded)
    if problems or made.text is None:
        help = "begin with a simpler one; for a binding, `frtspec scan` drafts from a live model"
        raise _Cant(f"no start for {options.target}: {problems[0].message}", help, CANT)
    return root / place, made.text


def _text(kind: str, name: str, target: start.Target | None, program: Program) -> tuple[str, str]:
    if target is None:
        return start.structure(name), f"structures/{name}/v1.frt"
    if kind == "impl":
        return start.impl(name, target), f"impls/{target.structure.name}_{name}.frt"
    if kind == "scheme":
        forms = target.impls(program)
        if not forms:
            raise _Cant(f"no impl is for {target.text}", "begin with `frtspec new impl`", CANT)
        form = next((f for f in forms if f.measured()), forms[0])
        return start.scheme(name, target, form), f"schemes/{name}.frt"
    return start.binding(name, target), f"bindings/{name}.frt"


def _target(text: str, program: Program) -> start.Target:
    found = _TARGET.match(text)
    keys = keys_of(program, ("structure",))
    plain = "" if found is None else f"{found[1]}@{found[3]}" if found[3] else found[1]
    if found is None or plain not in keys:
        near = did_you_mean(plain, keys)
        raise _Cant(f"no structure `{text}`", near or "write decoder_ffn.mlp@1", UNKNOWN)
    structure = program.structures[keys[plain][1]]  # type: ignore[index]
    seams = {seam.name: seam for seam in structure.seams}
    if found[2] is not None and found[2] not in seams:
        known = f"its seams: {', '.join(seams)}" if seams else "it has none"
        raise _Cant(f"`{structure.name}` has no seam `{found[2]}`", known, UNKNOWN)
    return start.Target(structure, None if found[2] is None else seams[found[2]])


def _findings(source: SourceFile, loaded: Loaded) -> list[Diagnostic]:
    """What a check of the start beside the other specs finds in it."""
    from frtspec.sema.analyse import analyse
    from frtspec.syntax.parse import parse

    sources = [*loaded.sources.values(), source]
    found = analyse([(one, parse(one).file) for one in sources]).diagnostics
    return [d for d in found if d.span.path == source.path and d.severity == "error"]
