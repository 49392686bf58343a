"""Codes of generating and writing packages (FRT083x)."""

from __future__ import annotations

from frtspec.diag.codes_types import Code, Example

_SPEC = """frt 1

structure copy version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  reference {
    point x_in = x
    yield y = x_in
  }
}
"""

_PROJECT = '[tool.frtspec]\npackage = "my_kernels"\n'
_FILES = (("pyproject.toml", _PROJECT), ("specs/copy.frt", _SPEC))
_COPY = "generated/my_kernels/structures/copy_v1.py"
_GEN = ("gen", "specs")

CODES: tuple[Code, ...] = (
    Code(
        id="FRT0830",
        title="generated file edited by hand",
        phase="tool",
        summary="A generated file is not as `frtspec gen` wrote it, and not as it would write it "
        "now. Someone edited it. It was left alone, and so was everything else: a run writes "
        "all of its files or none.",
        example=Example(_FILES, _GEN, prepare=_GEN, edits=((_COPY, "# a note to myself\n"),)),
        fix="Make the change in the spec. Then delete the file and run `frtspec gen` again.",
    ),
    Code(
        id="FRT0831",
        title="something in the way of a generated file",
        phase="tool",
        summary="Where a generated file belongs there is a file that `frtspec gen` did not write, "
        "a folder, or a symbolic link. None of these is replaced, because none is ours.",
        example=Example((*_FILES, (_COPY, "# my own file\n")), _GEN),
        fix="Move it away, or let `frtspec gen --out` write somewhere else.",
    ),
    Code(
        id="FRT0832",
        title="generated file out of date",
        phase="tool",
        summary="`frtspec gen --check` compares the generated package with what its specs give "
        "now. This file differs; the difference is printed.",
        example=Example(_FILES, (*_GEN, "--check")),
        fix="Run `frtspec gen` and commit what it writes.",
    ),
    Code(
        id="FRT0833",
        title="manifest that is not one of ours",
        phase="tool",
        summary="MANIFEST.json lists the files of a generated package and how they were written; "
        "it decides which files may be replaced. This one can't be understood, so nothing was "
        "touched.",
        example=Example((*_FILES, ("generated/my_kernels/MANIFEST.json", "[]")), _GEN),
        fix="Restore the file from version control. Where there is none, move the folder away "
        "and generate it anew.",
    ),
    Code(
        id="FRT0834",
        title="package that cannot be written",
        phase="tool",
        summary="The operating system refused to write the package, or the formatter that the "
        "generated code needs is not installed in the version frtspec is made for. The package "
        "is as it was before.",
        example=Example((*_FILES, ("taken", "a file")), (*_GEN, "--out", "taken")),
        fix="Make the folder writable, choose another one with `--out`, or install the formatter "
        "that the message names.",
    ),
    Code(
        id="FRT0835",
        title="name that generated code uses itself",
        phase="tool",
        summary="A name of the spec becomes an argument, a variable or a member in the generated "
        "Python, and there the name means something else: a module such as `torch`, a builtin "
        "such as `len`, a member of every impl such as `train`.",
        example=Example(
            (
                ("pyproject.toml", _PROJECT),
                (
                    "specs/copy.frt",
                    _SPEC.replace("in  x ", "in  torch ").replace("= x\n", "= torch\n"),
                ),
            ),
            _GEN,
        ),
        fix="Rename it.",
    ),
)
