"""The commands and their options."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from frtspec import __version__
from frtspec.cli.common import USAGE
from frtspec.devices import DEVICES
from frtspec.diag.render import FORMATS
from frtspec.diag.suggest import did_you_mean

CATALOGS = ("flash-rt",)
"""Other catalogs that can be read and written."""


class _Parser(argparse.ArgumentParser):
    """argparse, with a did-you-mean for a misspelt command or option."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: error: {message}", file=sys.stderr)
        typed = re.search(r"invalid choice: '([^']*)'|unrecognized arguments: ([^\s=]*)", message)
        help = did_you_mean(typed[1] or typed[2], _names(self)) if typed else None
        if help:
            print(f"   help: {help}", file=sys.stderr)
        raise SystemExit(USAGE)


def _names(parser: argparse.ArgumentParser) -> set[str]:
    """Every command, choice and option below the parser."""
    names: set[str] = set()
    for action in parser._actions:
        names.update(action.option_strings, map(str, action.choices or ()))
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                names |= _names(child)
    return names


# ---------------------------------------------------------------- options of several commands


def _paths(parser: argparse.ArgumentParser) -> None:
    text = "files or folders; default: the project's spec roots"
    parser.add_argument("paths", nargs="*", metavar="PATH", help=text)


def _check_only(parser: argparse.ArgumentParser) -> None:
    text = "write nothing, fail on a difference"
    parser.add_argument("--check", action="store_true", help=text)


def _format(parser: argparse.ArgumentParser, choices: Sequence[str]) -> None:
    parser.add_argument("--format", choices=choices, default="text", help="default: text")


# ---------------------------------------------------------------- a function a command


def _check(parser: argparse.ArgumentParser) -> None:
    _paths(parser)
    _format(parser, FORMATS)


def _gen(parser: argparse.ArgumentParser) -> None:
    _paths(parser)
    parser.add_argument("--out", metavar="DIR", help="folder to write into; default: generated/")
    parser.add_argument("--package", metavar="NAME", help="name of the project's own package")
    _check_only(parser)


def _fmt(parser: argparse.ArgumentParser) -> None:
    text = "files or folders; `-`: from standard input to standard output"
    parser.add_argument("paths", nargs="*", metavar="PATH", help=text)
    text = "only what these lines of one file lie in, from 1, both included"
    parser.add_argument("--range", type=_lines, metavar="A:B", help=text)
    text = "how messages call standard input; default: <stdin>"
    parser.add_argument("--stdin-name", metavar="NAME", default="<stdin>", help=text)
    _check_only(parser)


def _lines(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]+):([0-9]+)", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"`{text}` is no range of lines such as 3:7")
    return int(found[1]), int(found[2])


def _lock(parser: argparse.ArgumentParser) -> None:
    _check_only(parser)


def _diff(parser: argparse.ArgumentParser) -> None:
    side = "a file, a folder, git:REF, git:REF:PATH or lock"
    parser.add_argument("old", nargs="?", metavar="OLD", help=f"{side}; default: lock")
    text = f"{side}; default: the project's spec roots"
    parser.add_argument("new", nargs="?", metavar="NEW", help=text)
    text = "what becomes of the receipts in this folder"
    parser.add_argument("--receipts", metavar="DIR", help=text)
    text = "acceptances; default: accept.toml in the newer side's spec root"
    parser.add_argument("--accept", metavar="FILE", help=text)
    text = "judge drafts as if they were released"
    parser.add_argument("--drafts", action="store_true", help=text)
    _format(parser, ("text", "json", "github", "sarif", "markdown"))


def _new(parser: argparse.ArgumentParser) -> None:
    kinds = ("structure", "binding", "scheme", "impl")
    parser.add_argument("kind", choices=kinds, metavar="|".join(kinds), help="what to begin")
    parser.add_argument("name", metavar="NAME", help="as specs name it")
    text = "of a structure: the next version, beside the newest one"
    parser.add_argument("--bump", action="store_true", help=text)
    text = "structure that a binding, scheme or impl is for: decoder_ffn.mlp@1; default: linear_proj"
    parser.add_argument("--for", dest="target", metavar="STRUCTURE", help=text)


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("code", nargs="?", metavar="CODE", help="for example FRT0201")


def _docs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", default="docs", help="default: docs/")
    _check_only(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "binding",
        metavar="BINDING",
        help="one of the catalog (qwen3), a generated package (my_kernels.qwen3), or FILE.frt",
    )
    parser.add_argument(
        "factory",
        metavar="MODULE:FACTORY",
        help="a function that returns (model, forward) or (model, forward, observations)",
    )
    _format(parser, ("text", "json"))
    parser.add_argument(
        "--max-samples", type=int, metavar="N", help="run at most N samples; default: all"
    )


def _scan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "factory",
        metavar="MODULE:FACTORY",
        help="a function that returns model, (model, forward) or (model, forward, observations)",
    )
    parser.add_argument("--out", metavar="FILE", help="write the draft here; default: to stdout")
    parser.add_argument("--name", metavar="NAME", help="name of the binding; default: the class")
    parser.add_argument(
        "--package",
        metavar="NAME",
        help="generated package with the structures; default: the catalog's",
    )
    _format(parser, ("text", "json"))


def _receipts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        choices=("verify", "show", "compare", "matrix"),
        metavar="verify|show|compare|matrix",
        help="check digests; tell one; what differs between two; hosts by structures",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="receipts, or folders of them (*.json)"
    )
    _format(parser, ("text", "json"))


def _imports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("catalog", choices=CATALOGS, metavar="CATALOG", help="flash-rt")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="DIR",
        help="folder of its bindings/ and structures/; default: that of the installed package",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write into")
    _check_only(parser)
    _format(parser, FORMATS)


def _exports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("catalog", choices=CATALOGS, metavar="CATALOG", help="flash-rt")
    _paths(parser)
    parser.add_argument("--out", required=True, metavar="DIR", help="folder to write into")
    _check_only(parser)
    _format(parser, FORMATS)


def _graph(parser: argparse.ArgumentParser) -> None:
    text = "a structure or pipeline: decoder_ffn, decoder_ffn@1"
    parser.add_argument("name", metavar="NAME", help=text)
    parser.add_argument("--out", metavar="FILE", help="default: to standard output")


def _cost(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("binding", metavar="BINDING", help="one of the project or the catalog")
    parser.add_argument("--device", choices=tuple(DEVICES), default="h200", help="default: h200")
    text = "row counts with commas; default: 1,64,2048"
    parser.add_argument("--rows", type=_counts, default=(1, 64, 2048), metavar="N,…", help=text)
    text = "config.json of a model; default: the sizes of a known model for each structure"
    parser.add_argument("--config", metavar="FILE", help=text)
    _format(parser, ("text", "json"))


def _counts(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[1-9][0-9]{0,11}(,[1-9][0-9]{0,11})*", text):
        raise argparse.ArgumentTypeError(f"`{text}` is no list of row counts such as 1,64")
    return tuple(int(part) for part in text.split(","))


def _query(parser: argparse.ArgumentParser) -> None:
    choices = ("structures", "pipelines", "impls", "schemes", "bindings", "users")
    text = "what to list; users: who pins NAME"
    parser.add_argument("what", choices=choices, metavar="|".join(choices), help=text)
    parser.add_argument("name", nargs="?", metavar="NAME", help="only this one")
    parser.add_argument("--json", action="store_true", help="JSON instead of columns")


def _lsp(parser: argparse.ArgumentParser) -> None:
    text = "the only way there is; editors pass it"
    parser.add_argument("--stdio", action="store_true", help=text)


class Command(NamedTuple):
    """``module``: that of ``frtspec.cli`` which runs it."""

    summary: str
    options: Callable[[argparse.ArgumentParser], None]
    module: str


COMMANDS = {
    "check": Command("check specs and report every finding", _check, "check"),
    "gen": Command("generate the Python package of specs and all they need", _gen, "gen"),
    "fmt": Command("format specs in place", _fmt, "fmt"),
    "lock": Command("record every declaration's digests in spec.lock", _lock, "lock"),
    "diff": Command("say what an edit means for whoever pins what it touches", _diff, "diff"),
    "new": Command("begin a spec, or the next version of a structure", _new, "new"),
    "explain": Command("explain a code, or list all codes", _explain, "explain"),
    "docs": Command(
        "write the catalog's pages: formulas, drawings, costs, who uses what", _docs, "docs"
    ),
    "verify": Command(
        "hold a binding against a live model: every path, slot, point, call", _verify, "verify"
    ),
    "scan": Command("write a draft binding for a model that nobody bound", _scan, "scan"),
    "receipts": Command(
        "verify receipts, show or compare them, or lay many out", _receipts, "receipts"
    ),
    "import": Command("read the bindings of another catalog into specs", _imports, "importing"),
    "graph": Command("draw a structure's dataflow or a pipeline's stages as SVG", _graph, "graph"),
    "cost": Command("what the seats of a binding cost on a device, at best", _cost, "cost"),
    "query": Command("list what is declared, and who pins what", _query, "query"),
    "lsp": Command("serve an editor: findings, hovers, completion, renames", _lsp, "lsp"),
    "export": Command("write bindings as documents of another catalog", _exports, "exporting"),
}


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. ``demo`` has options of its own."""
    found = _Parser(
        prog="frtspec",
        description="A spec language for fast regions of PyTorch models.",
        epilog="exit codes: 0 ok, 1 findings, 2 usage, 3 a fault in frtspec itself",
        allow_abbrev=False,
    )
    found.add_argument("--version", action="version", version=f"frtspec {__version__}")
    commands = found.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, row in COMMANDS.items():
        added = commands.add_parser(
            name, help=row.summary, description=row.summary, allow_abbrev=False
        )
        row.options(added)
    commands.add_parser("demo", help="attach to a small real model on this machine", add_help=False)
    return found
