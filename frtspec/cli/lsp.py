"""``frtspec lsp``: the language server, for editors."""

from __future__ import annotations

import argparse
import importlib.util
import sys

from frtspec.cli.common import OK, USAGE


def run(options: argparse.Namespace) -> int:
    """Serves an editor over standard input and output; 2 without the extra ``lsp``."""
    if importlib.util.find_spec("pygls") is None:
        print("frtspec: error: the language server needs pygls", file=sys.stderr)
        print("   help: pip install 'frtspec[lsp]'", file=sys.stderr)
        return USAGE
    from frtspec.lsp.server import serve

    serve()
    return OK
