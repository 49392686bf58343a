"""Codes of names (FRT02xx)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import BINDING, STRUCTURE, body, code, file, swap

CODES = (
    code(
        "0201",
        "names",
        "unknown name",
        "A name is used that nothing in scope declares: a dim, an input, a value of an earlier "
        "line, a variant, an op. It is reported at its first use only.",
        swap(file(STRUCTURE), "x_in @ w", "x_im @ w"),
        "Correct the spelling, or declare the name.",
    ),
    code(
        "0202",
        "names",
        "name declared twice",
        "Everything that a structure declares shares one space of names, because each becomes an "
        "argument or a local of one generated function. Inside a list, each name stands once.",
        swap(file(STRUCTURE), "slot w [D, F]", "slot w [D, F]\n  param w = 1"),
        "Give one of the two another name.",
    ),
    code(
        "0203",
        "names",
        "declaration given twice",
        "Two files, or two places of one file, declare the same structure and version, the same "
        "impl of one target, or the same scheme, pipeline or binding. Both places are shown.",
        file(STRUCTURE, STRUCTURE),
        "Leave one out, rename it, or give a structure the next version.",
    ),
    code(
        "0204",
        "names",
        "name that can't be used",
        "Names become Python names. Keywords of Python, names that start with two underscores or "
        "with frt_, and retired values of a variant are taken.",
        swap(
            body("let h = x\nyield y = h"),
            "let h = x\n    yield y = h",
            "let lambda = x\n    yield y = lambda",
        ),
        "Choose another name.",
    ),
    code(
        "0205",
        "names",
        "declaration that nothing uses",
        "Nothing that a spec declares is ignored: a dim, slot, input, param, variant or value "
        "that nothing reads is a mistake, or left over.",
        swap(file(STRUCTURE), "dim M, D, F", "dim M, D, F, H"),
        "Use it or leave it out. A value that is there to be measured is a `point`.",
    ),
    code(
        "0206",
        "names",
        "unknown structure, version or seam",
        "An impl, a scheme or a binding names a structure that no file of the run declares, a "
        "version of it that does not exist, or a seam that it does not have.",
        swap(file(STRUCTURE, BINDING), "seat proj : s version 1", "seat proj : s version 2"),
        "Name one that exists; the help lists the versions there are.",
    ),
    code(
        "0207",
        "names",
        "unknown word",
        "Some places take a word of a closed list: dtypes, formats, metrics, baselines, kinds of "
        "points and rungs, host facts. The lists are in docs/language.md.",
        swap(file(STRUCTURE), "in  x [rows M, D] : host", "in  x [rows M, D] : half"),
        "Use a word of the list.",
    ),
    code(
        "0208",
        "names",
        "member given twice",
        "A member that stands once in its block stands there twice, and the two may disagree.",
        swap(
            body("yield y = x", "status draft"), "status draft\n", "status draft\n  status draft\n"
        ),
        "Leave one of the two out.",
    ),
    code(
        "0209",
        "names",
        "member that is missing",
        "A declaration lacks what it can't be without: a structure its reference, a binding its "
        "host or its seats, a scheme what becomes of everything else.",
        swap(
            file('scheme quick {\n  otherwise keep "nothing has a form here"\n}\n'),
            '  otherwise keep "nothing has a form here"\n',
            "",
        ),
        "Add the member.",
    ),
)
