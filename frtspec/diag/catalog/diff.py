"""Codes of versions: sides of a diff, acceptances, retirement (FRT092x)."""

from __future__ import annotations

from frtspec.diag.codes_types import Code, Example

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

_ACCEPT = """[[accept]]
rule = "{rule}"
subject = "structure gain v1"
from = "000000000000"
to = "000000000000"
reason = "agreed"
by = "a.reviewer"
expires = 2099-01-01
"""

_GATED = """frt 1

structure gain version 1 {{
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  reference {{
    yield y = x * 2
  }}
  gate boundary on real_distribution {{ cosine >= {bound} }}
}}
"""

_ENDED = """[[accept]]
rule = "gate.loosened"
subject = "structure gain v1"
from = "b3103ddf124e"
to = "e8dd2313542c"
reason = "agreed"
by = "a.reviewer"
expires = 2020-01-01
"""

_LOCKED = """[[declaration]]
kind = "structure"
name = "gain"
version = 1
path = "gain.frt"
source_digest = "0"
contract_digest = "0"
status = "retired"
"""

_SPEC = ("specs/gain.frt", _GAIN)


def _accepting(text: str) -> Example:
    files = (_SPEC, ("specs/accept.toml", text))
    return Example(files, ("diff", "specs", "specs", "--accept", "specs/accept.toml"))


CODES: tuple[Code, ...] = (
    Code(
        id="FRT0920",
        title="side of a diff that means nothing",
        phase="diff",
        summary="`frtspec diff` compares two sides: files, folders, `git:REF`, or `lock`. There is "
        "nothing of this name, or nothing in it.",
        example=Example((_SPEC,), ("diff", "spec", "specs")),
        fix="Correct the path or the name of the commit.",
    ),
    Code(
        id="FRT0921",
        title="unreadable accept.toml",
        phase="diff",
        summary="Each row of accept.toml says which rule is accepted for which declaration, "
        "between which two contract digests, why, by whom and until when. This one can't be "
        "understood, so nothing is accepted by it.",
        example=_accepting('[[accept]]\nrule = "gate.loosened"\n'),
        fix="Complete the row, or restore the file from version control.",
    ),
    Code(
        id="FRT0922",
        title="acceptance of nothing",
        phase="diff",
        summary="An acceptance holds between two digests only. This comparison has no such event: "
        "the edit is another one by now, or it is done and the row was left behind.",
        example=_accepting(_ACCEPT.format(rule="gate.loosened")),
        fix="Take the row out. For another edit, judge it anew.",
    ),
    Code(
        id="FRT0923",
        title="acceptance that ended",
        phase="diff",
        summary="An acceptance says until when it holds, and that day is over. What it let pass "
        "is breaking again.",
        example=Example(
            (
                ("old.frt", _GATED.format(bound="0.999")),
                ("new.frt", _GATED.format(bound="0.99")),
                ("accept.toml", _ENDED),
            ),
            ("diff", "old.frt", "new.frt", "--accept", "accept.toml"),
        ),
        fix="Mend the specs, or decide anew and give a new date.",
    ),
    Code(
        id="FRT0924",
        title="acceptance of what can't be accepted",
        phase="diff",
        summary="A contract that changed under an old version, and a version that went without a "
        "note, break whoever pins them; nobody can agree to it on their behalf. There is also no "
        "acceptance of a rule that does not exist.",
        example=_accepting(_ACCEPT.format(rule="version.missing")),
        fix="Declare the change as a new version, or retire the old one with a note.",
    ),
    Code(
        id="FRT0925",
        title="retirement of what is pinned",
        phase="diff",
        summary="The lock calls this version retired, and a declaration here still names it. Both "
        "versions stay side by side until everything has moved.",
        example=Example(
            (
                _SPEC,
                ("specs/plain.frt", _OF_GAIN),
                ("specs/spec.lock", _LOCKED + 'migration = "use gain version 2"\n'),
            ),
            ("lock",),
        ),
        fix="Move those that the message names to the newer version and qualify them there, or "
        "set the status back to released.",
    ),
    Code(
        id="FRT0926",
        title="migration note that is missing, or in the wrong place",
        phase="diff",
        summary="Whoever meets a retired version has to read where to go from it, so a row of "
        "status retired has a `migration`. A row of another status has none.",
        example=Example((_SPEC, ("specs/spec.lock", _LOCKED)), ("lock",)),
        fix='Write `migration = "…"` into the row, or take it out.',
    ),
    Code(
        id="FRT0927",
        title="new version that can't be begun",
        phase="diff",
        summary="`frtspec new structure NAME --bump` writes the next version beside the newest one "
        "of the project. There is no structure of this name in the project, or something stands "
        "in the way.",
        example=Example((_SPEC,), ("new", "structure", "gian", "--bump")),
        fix="Correct the name, or move away what stands at the place of the new file.",
    ),
)
