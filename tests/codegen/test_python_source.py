"""Expressions, literals and docstrings: what is written reads back as what was meant."""

from __future__ import annotations

import ast
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.codegen import pysrc
from frtspec.codegen.pysrc import Py, binary, call, fstring, negative, number, pyrepr, ternary

NAMES = {"a": Fraction(3), "b": Fraction(-2, 5), "c": Fraction(7, 3), "d": Fraction(1, 2)}
OPERATORS = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "@": lambda x, y: x @ y,
}


class Noted:
    """A value that writes down how it was computed, so that grouping shows."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __add__(self, other: Noted) -> Noted:
        return Noted(f"({self.text}+{other.text})")

    def __sub__(self, other: Noted) -> Noted:
        return Noted(f"({self.text}-{other.text})")

    def __mul__(self, other: Noted) -> Noted:
        return Noted(f"({self.text}*{other.text})")

    def __matmul__(self, other: Noted) -> Noted:
        return Noted(f"({self.text}@{other.text})")

    def __pow__(self, other: Noted) -> Noted:
        return Noted(f"({self.text}**{other.text})")

    def __neg__(self) -> Noted:
        return Noted(f"(-{self.text})")


def leaves() -> st.SearchStrategy[tuple[Py, str]]:
    return st.sampled_from([(Py(name), name) for name in "abcd"])


def grown(inner: st.SearchStrategy[tuple[Py, str]]) -> st.SearchStrategy[tuple[Py, str]]:
    pairs = st.tuples(st.sampled_from(["+", "-", "*", "@", "**"]), inner, inner)
    two = pairs.map(lambda t: (binary(t[0], t[1][0], t[2][0]), f"({t[1][1]}{t[0]}{t[2][1]})"))
    one = inner.map(lambda t: (negative(t[0]), f"(-{t[1]})"))
    return two | one


@given(st.recursive(leaves(), grown, max_leaves=12))
def test_parentheses_keep_the_tree(case: tuple[Py, str]) -> None:
    """Floats are not associative: the grouping of the spec has to survive."""
    source, meant = case
    env = {name: Noted(name) for name in "abcd"}
    assert eval(source.text, {}, env).text == meant


def test_no_parentheses_without_need() -> None:
    a, b, c = Py("a"), Py("b"), Py("c")
    assert binary("+", binary("*", a, b), c).text == "a * b + c"
    assert binary("-", a, binary("-", b, c)).text == "a - (b - c)"
    assert binary("*", binary("+", a, b), c).text == "(a + b) * c"
    assert binary("**", a, number(Decimal("-0.5"))).text == "a ** -0.5"
    assert binary("+", a, b).method("float").text == "(a + b).float()"
    assert call("f", binary("+", a, b)).text == "f(a + b)"


def test_a_product_of_matrices_is_set_off() -> None:
    a, b, c = Py("a"), Py("b"), Py("c")
    assert binary("*", binary("@", a, b), c).text == "(a @ b) * c"
    assert binary("@", binary("@", a, b), c).text == "a @ b @ c"


def test_a_conditional_expression_is_loose() -> None:
    chosen = ternary(Py("p"), Py("a"), Py("b"))
    assert chosen.method("float").text == "(a if p else b).float()"


# ---------------------------------------------------------------- literals

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner).map(tuple) | st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES)
def test_literals_read_back(value: object) -> None:
    assert ast.literal_eval(pyrepr(value)) == value


@given(st.text())
def test_a_literal_stays_on_its_line(text: str) -> None:
    assert pyrepr(text).isprintable()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1e-6"), "1e-6"),
        (Decimal("0.999"), "0.999"),
        (Decimal(1048576), "1048576"),
        (Decimal("2.50"), "2.5"),
        (Decimal("1E+3"), "1000"),
        (Decimal("-0.5"), "-0.5"),
        (1e20, "1e20"),
        (5e-324, "5e-324"),
    ],
)
def test_numbers_as_a_person_writes_them(value: Decimal | float, text: str) -> None:
    assert pyrepr(value) == text


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9))
def test_a_number_is_the_nearest_float(value: Decimal) -> None:
    assert float(pyrepr(value)) == float(value)


def test_a_set_is_no_literal() -> None:
    with pytest.raises(TypeError):
        pyrepr({"a", "b"})


def test_quotes_are_double_like_blacks() -> None:
    assert pyrepr("it's") == '"it\'s"'
    assert pyrepr('say "x"') == "'say \"x\"'"
    assert pyrepr("tab\there") == '"tab\\there"'


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=8))))
def test_f_strings_read_back(parts: list[tuple[bool, str]]) -> None:
    """Literal parts come back whatever they hold; holes are evaluated."""
    source = fstring([(hole, "i" if hole else text) for hole, text in parts])
    assert eval(source.text, {}, {"i": 7}) == "".join("7" if h else t for h, t in parts)


def test_a_hole_may_hold_a_string() -> None:
    source = fstring([(False, "layers."), (True, 'size["L"]')])
    assert eval(source.text, {}, {"size": {"L": 4}}) == "layers.4"


# ---------------------------------------------------------------- text


@given(st.text())
def test_any_text_can_be_a_docstring(text: str) -> None:
    lines = pysrc.doc_lines(text)
    source = '"""' + "\n".join(lines) + '\n"""'
    assert isinstance(ast.literal_eval(source), str)


def test_a_docstring_keeps_plain_text() -> None:
    assert pysrc.doc_lines("A norm.\n\n  `x @ w`  ") == ["A norm.", "", "  `x @ w`"]


@given(st.text())
def test_any_text_can_be_a_comment(text: str) -> None:
    assert "\n" not in pysrc.comment_text(text)
    ast.parse(f"# {pysrc.comment_text(text)}\n")


def test_imports_are_sorted_by_module() -> None:
    lines = ["from b import x", "from a.c import y", "from a import z", "from b import x"]
    assert pysrc.imports(lines) == ("from a import z", "from a.c import y", "from b import x")


@given(st.text())
def test_a_long_text_reads_back_whole(text: str) -> None:
    assert ast.literal_eval(pysrc.text_literal(text)) == text


def test_a_long_text_is_written_in_pieces() -> None:
    long = "this host norms the output of its feed-forward block before it adds the residual to it"
    source = pysrc.text_literal(f"{long}, so no boundary of the structure lies anywhere on it")
    assert source.startswith("(") and source.count('"') == 4
    assert pysrc.text_literal(long[:80]) == pysrc.quoted(long[:80])
