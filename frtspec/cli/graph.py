"""``frtspec graph``: a structure's dataflow or a pipeline's stages as one SVG picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from frtspec.cli.common import FINDINGS, OK, refused, report
from frtspec.cli.named import found_or_reported
from frtspec.docgen.flow import flow
from frtspec.docgen.markdown import first_sentence
from frtspec.docgen.stages import stage_flow
from frtspec.docgen.svg import draw
from frtspec.files import write_atomically


def run(options: argparse.Namespace) -> int:
    """Writes the picture to standard output or into a file; 1 where nothing is so called."""
    named = found_or_reported(options.name, ("structure", "pipeline"))
    if isinstance(named, int):
        return named
    program = named.program
    if named.kind == "structure":
        structure = program.structures[named.key]  # type: ignore[index]
        title = f"Dataflow of {structure.name} version {structure.version}"
        shown = flow(structure, named.loaded.sources)
        picture = draw(shown, title, first_sentence(structure.doc))
    else:
        pipeline = program.pipelines[named.key]  # type: ignore[index]
        title = f"Stages of {pipeline.name} version {pipeline.version}"
        picture = draw(stage_flow(pipeline), title, first_sentence(pipeline.doc))
    if options.out is None:
        sys.stdout.write(picture)
        return OK
    try:
        write_atomically(Path(options.out), picture.encode())
    except OSError as error:
        report([refused(options.out, error)], {})
        return FINDINGS
    return OK
