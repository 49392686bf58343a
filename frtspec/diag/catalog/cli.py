"""Codes of the command line, the configuration and the lock file (FRT085x to FRT087x)."""

from __future__ import annotations

from frtspec.diag.codes_types import Code, Example

_SCHEME = 'frt 1\n\nscheme plain {\n  otherwise keep "this scheme changes nothing"\n}\n'

_GAIN = """frt 1

structure gain version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  reference {
    yield y = x * 2
  }
}
"""

_OF_GAIN = """frt 1

scheme plain {
  at gain version 1 keep "nothing to gain"
  otherwise keep "nothing has a form here"
}
"""

_RELEASED = """[[declaration]]
kind = "scheme"
name = "plain"
path = "schemes/plain.frt"
source_digest = "0"
contract_digest = "0"
status = "released"
"""

_BROKEN = """frt 1

structure copy version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  reference {
    yield y = x + z
  }
}
"""

_NEEDS_BROKEN = """frt 1

impl plain for copy version 1 {
  rung emulate
}
"""


def _config(text: str, argv: tuple[str, ...] = ("check",)) -> Example:
    files = (("pyproject.toml", f"[tool.frtspec]\n{text}\n"), ("specs/schemes/plain.frt", _SCHEME))
    return Example(files, argv)


CODES: tuple[Code, ...] = (
    Code(
        id="FRT0851",
        title="configuration that is no TOML",
        phase="tool",
        summary="The project's pyproject.toml can't be read as TOML, so its [tool.frtspec] "
        "table is unknown. A run with defaults in its place could check the wrong files.",
        example=_config('package = "my_kernels'),
        fix="Correct the file at the place shown.",
    ),
    Code(
        id="FRT0852",
        title="unknown key in [tool.frtspec]",
        phase="tool",
        summary="The table holds a key that frtspec does not know. Unknown keys are refused, "
        "because a misspelt one would otherwise be ignored without a word.",
        example=_config('pakage = "my_kernels"'),
        fix="Correct the spelling or remove the key. The keys are `specs`, `out` and `package`.",
    ),
    Code(
        id="FRT0853",
        title="wrong kind of value in [tool.frtspec]",
        phase="tool",
        summary="A key of the table holds a value of a kind that it can't have.",
        example=_config('specs = "specs"'),
        fix="Write the value as the message shows: `specs` is a list of folders, `out` a folder, "
        "`package` a name.",
    ),
    Code(
        id="FRT0854",
        title="spec root that is no folder",
        phase="tool",
        summary="`specs` names a folder that is not there. Spec roots are relative to the "
        "folder of pyproject.toml.",
        example=_config('specs = ["specs", "spec"]'),
        fix="Create the folder, or correct its name.",
    ),
    Code(
        id="FRT0855",
        title="unusable package name",
        phase="tool",
        summary="A project's own specs are generated into a package of the project's own name. "
        "It can't be `flashrt_gen`: that package is installed with frtspec, and Python does "
        "not read one regular package from two folders. It must be one Python name.",
        example=_config('package = "flashrt_gen"'),
        fix='Choose another name, for example `package = "my_kernels"`.',
    ),
    Code(
        id="FRT0856",
        title="path that means nothing",
        phase="tool",
        summary="No file or folder of this name lies in the current folder, in a spec root of "
        "the project, or in the catalog.",
        example=Example((), ("check", "bindings/qwen4.frt")),
        fix="Correct the path. `bindings/qwen3.frt` names a file of the catalog from anywhere.",
    ),
    Code(
        id="FRT0857",
        title="folder without specs",
        phase="tool",
        summary="A folder was given that holds no .frt file, so the run would check nothing and "
        "look like a success. Hidden folders and virtual environments are not searched.",
        example=Example((("empty", None),), ("check", "empty")),
        fix="Give the folder that holds the specs.",
    ),
    Code(
        id="FRT0858",
        title="errors in a file that was read only for its names",
        phase="tool",
        summary="Names are resolved across all spec roots, so files are read that were not asked "
        "for: those that the asked ones need. One of them has errors. They do not fail this run, "
        "but names that it declares may be missing.",
        example=Example(
            (
                ("specs/gain.frt", _GAIN + "\nscheme {\n"),
                ("specs/schemes/plain.frt", _OF_GAIN),
            ),
            ("check", "schemes/plain.frt"),
        ),
        fix="Run `frtspec check` with the path shown, and mend that file.",
    ),
    Code(
        id="FRT0859",
        title="catalog that can't be written",
        phase="tool",
        summary="`fmt` and `lock` write a project's own files. The catalog of an installed "
        "frtspec is not one of them, and there is no spec root here.",
        example=Example((), ("lock", "--check")),
        fix="Run the command in a project with specs of its own; name its spec roots in "
        "[tool.frtspec].",
    ),
    Code(
        id="FRT0860",
        title="declaration that moved away from spec.lock",
        phase="tool",
        summary="spec.lock records the digests of every declaration, so that a change of a "
        "contract is seen in review. A declaration is new, gone, or no longer what the lock "
        "says. `source_digest` covers the file's bytes, `contract_digest` its meaning.",
        example=Example(
            (("specs/schemes/plain.frt", _SCHEME),),
            ("lock", "--check"),
            prepare=("lock",),
            edits=(("specs/schemes/plain.frt", _SCHEME.replace("nothing", "no seat")),),
        ),
        fix="When the change is meant, run `frtspec lock` and commit spec.lock with it.",
    ),
    Code(
        id="FRT0861",
        title="unreadable spec.lock",
        phase="tool",
        summary="spec.lock is written by `frtspec lock`; apart from a row's status it is not "
        "edited by hand. This one can't be understood.",
        example=Example(
            (
                ("specs/schemes/plain.frt", _SCHEME),
                ("specs/spec.lock", "[[declaration]]\nkind = 1\n"),
            ),
            ("lock", "--check"),
        ),
        fix="Restore the file from version control, or delete it and run `frtspec lock`.",
    ),
    Code(
        id="FRT0862",
        title="change of a released version",
        phase="tool",
        summary="The lock says that this version is released or retired. Its bytes are frozen "
        "from then on: receipts, impls and bindings elsewhere cite them.",
        example=Example(
            (
                ("specs/schemes/plain.frt", _SCHEME),
                ("specs/spec.lock", _RELEASED),
            ),
            ("lock", "--check"),
        ),
        fix="Restore the released text, and declare the change as a new version beside it.",
    ),
    Code(
        id="FRT0863",
        title="file that the system refuses",
        phase="tool",
        summary="A file could not be read or written: something else stands at its path, or the "
        "permissions do not allow it. It is as it was before.",
        example=Example(
            (("specs/schemes/plain.frt", _SCHEME), ("specs/spec.lock", None)), ("lock", "--check")
        ),
        fix="Move away what is in the way, or change the permissions.",
    ),
    Code(
        id="FRT0865",
        title="own specs without a package name",
        phase="tool",
        summary="Specs that are not part of the catalog are generated into a package of the "
        "project's own name, and none is configured.",
        example=Example((("specs/schemes/plain.frt", _SCHEME),), ("gen", "schemes/plain.frt")),
        fix="Put `package` into [tool.frtspec] of pyproject.toml, or give `--package`.",
    ),
    Code(
        id="FRT0866",
        title="declaration that needs a broken one",
        phase="tool",
        summary="What was to be generated is right in itself, but needs a declaration of another "
        "file, and that one has errors. Nothing was written.",
        example=Example(
            (("specs/copy.frt", _BROKEN), ("specs/plain.frt", _NEEDS_BROKEN)),
            ("gen", "plain.frt", "--package", "my_kernels"),
        ),
        fix="Run `frtspec check` on the project and mend the other file.",
    ),
    Code(
        id="FRT0870",
        title="file not in the one layout",
        phase="tool",
        summary="`frtspec fmt --check` found a file that `frtspec fmt` would lay out another way.",
        example=Example(
            (("plain.frt", _SCHEME.replace("  otherwise", "otherwise")),),
            ("fmt", "--check", "plain.frt"),
        ),
        fix="Run `frtspec fmt`.",
    ),
    Code(
        id="FRT0871",
        title="sizes of models that mean nothing",
        phase="tool",
        summary="`frtspec docs` works out costs at the sizes in `sizes.toml` of a spec root, and "
        "that file can't be used.",
        example=Example(
            (
                ("pyproject.toml", '[tool.frtspec]\nspecs = ["specs"]\n'),
                ("specs/plain.frt", _SCHEME),
                ("specs/sizes.toml", '[[sizes]]\nmodel = "mine"\n'),
            ),
            ("docs", "--check"),
        ),
        fix="Mend the table that the message names: `structure`, `model`, `dims`, and `rows` where "
        "the rows are not M.",
    ),
    Code(
        id="FRT0950",
        title="declaration that nothing is called",
        phase="tool",
        summary="A command was given the name of a structure, pipeline, binding, impl or scheme, and "
        "neither the project nor the catalog declares one of that name.",
        example=Example((("specs/schemes/plain.frt", _SCHEME),), ("graph", "decoder_fn")),
        fix="`frtspec query structures` and its like list the names; a version is written "
        "`decoder_ffn@1`.",
    ),
    Code(
        id="FRT0951",
        title="start that is not written",
        phase="tool",
        summary="`frtspec new` writes no start: the name can't be used or is taken, something stands "
        "at the file's place, or no start for that structure would check.",
        example=Example(
            (("specs/schemes/plain.frt", _SCHEME),), ("new", "structure", "decoder_ffn")
        ),
        fix="Choose another name, or another structure after `--for`.",
    ),
)
