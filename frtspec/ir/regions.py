"""Parts of a dataflow that one library op of torch computes: attention, and the delta rule.

A lowering stands for one op of the table or, here, for several statements. What they are is
found by what they compute, step by step, so that a dataflow which differs in one of them is
not taken for the region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from frtspec.ir.expr import Const, Expr, IsPresent, Let, Op, Ref, Scan, Select, Stmt
from frtspec.ir.walk import parts

CASTS = frozenset({"f32", "bf16", "fp16", "cast"})


def bare(expr: Expr) -> Expr:
    """An expression without the casts around it."""
    while isinstance(expr, Op) and expr.op in CASTS:
        expr = expr.args[0]
    return expr


# ---------------------------------------------------------------- attention


@dataclass(frozen=True)
class Attention:
    """``softmax(q @ k.T * scale + mask) @ v``, keys and values shared by groups of heads or not.

    at      the definition of its result
    scale   what scores are multiplied by; None: nothing
    bias    the optional input that is added to the scores
    seen    the optional input of truths, whose logarithm is added
    causal  (axis, values) of the variant under which a call without a mask is causal; of
            every call where the axis is None
    """

    at: Let
    q: Expr
    k: Expr
    v: Expr
    scale: Expr | None
    bias: str | None = None
    seen: str | None = None
    causal: tuple[str | None, tuple[str, ...]] | None = None


@dataclass(frozen=True)
class _Scores:
    """How scores were made so far."""

    q: Expr
    k: Expr
    scale: Expr | None = None
    bias: str | None = None
    seen: str | None = None
    causal: tuple[str | None, tuple[str, ...]] | None = None

    @property
    def masked(self) -> bool:
        return any(part is not None for part in (self.bias, self.seen, self.causal))


def attention(body: Sequence[Stmt]) -> Attention | None:
    """The one attention of some statements."""
    found = [_attention(body, place) for place in range(len(body))]
    whole = [region for region in found if region is not None]
    return whole[0] if len(whole) == 1 else None


def _attention(body: Sequence[Stmt], place: int) -> Attention | None:
    let = body[place]
    if not isinstance(let, Let) or let.when is not None:
        return None
    product = bare(let.value)
    if not isinstance(product, Op) or product.op != "matmul":
        return None
    weights = bare(product.args[0])
    if not isinstance(weights, Op) or weights.op != "softmax" or weights.attr("axis", -1) != -1:
        return None
    scores = _Fold(body).scores(weights.args[0], place)
    if scores is None:
        return None
    k, v = (_source(body, side, place) for side in (scores.k, product.args[1]))
    if isinstance(k, Op) and isinstance(v, Op):  # both shared by the same groups of heads
        if k.attrs != v.attrs:
            return None
        k, v = bare(k.args[0]), bare(v.args[0])
    elif isinstance(k, Op) or isinstance(v, Op):
        return None
    named = (scores.bias, scores.seen, scores.causal)
    return Attention(let, _source(body, scores.q, place), k, v, scores.scale, *named)


def _source(body: Sequence[Stmt], expr: Expr, place: int) -> Expr:
    """What an operand names: a value, or the ``repeat`` of one over the axis of heads."""
    expr = bare(expr)
    if isinstance(expr, Ref) and expr.kind == "value":
        before = _defined(body, expr.name, place)
        value = bare(before[1].value) if before is not None and before[1].when is None else expr
        if isinstance(value, Op) and value.op == "repeat" and value.attr("axis") == -3:
            return value
    return expr


def _defined(body: Sequence[Stmt], name: str, place: int) -> tuple[int, Let] | None:
    """The last definition of a name before a place."""
    for at in range(place - 1, -1, -1):
        stmt = body[at]
        if isinstance(stmt, Let) and stmt.name == name:
            return at, stmt
    return None


@dataclass
class _Fold:
    """Follows scores back through their definitions to the product that they are of."""

    body: Sequence[Stmt]

    def scores(self, expr: Expr, place: int) -> _Scores | None:
        expr = bare(expr)
        match expr:
            case Ref(kind="value", name=name):
                return self._value(name, place)
            case Op(op="matmul", args=(q, right)):
                turned = bare(right)
                if isinstance(turned, Op) and turned.op == "transpose":
                    pair = turned.attr("pair", (-2, -1))
                    return _Scores(q, turned.args[0]) if pair == (-2, -1) else None
            case Op(op="mul", args=(inner, factor)):
                return self._scaled(self.scores(inner, place), factor)
            case Op(op="add", args=(inner, mask)):
                return _masked(self.scores(inner, place), bare(mask))
            case Op(op="causal_mask", args=(inner,)):
                found = self.scores(inner, place)
                if found is not None and not found.masked:
                    return replace(found, causal=(None, ()))
            case Select():
                return self._chosen(expr, place)
        return None

    def _value(self, name: str, place: int) -> _Scores | None:
        found = _defined(self.body, name, place)
        if found is None:
            return None
        at, let = found
        mine = self.scores(let.value, at)
        if mine is None or let.when is None:
            return mine
        other = self._value(name, at) if let.otherwise is None else self.scores(let.otherwise, at)
        present = let.when.name if isinstance(let.when, IsPresent) else None
        if other is None or present is None or present not in (mine.bias, mine.seen):
            return None
        without = replace(mine, bias=None, seen=None, causal=other.causal)
        alike = _same(without, other) and mine.causal is None
        return replace(mine, causal=other.causal) if alike else None

    def _scaled(self, scores: _Scores | None, factor: Expr) -> _Scores | None:
        tensors = any(isinstance(p, Ref) and p.kind != "param" for p in parts(factor))
        if scores is None or scores.masked or tensors:
            return None
        if scores.scale is not None:
            factor = Op("mul", (scores.scale, factor), (), factor.span)
        return replace(scores, scale=factor)

    def _chosen(self, select: Select, place: int) -> _Scores | None:
        arms = [(values, self.scores(arm, place)) for values, arm in select.arms]
        first = arms[0][1]
        found = [(values, arm) for values, arm in arms if arm is not None]
        if first is None or len(found) != len(arms):
            return None
        causal = tuple(v for values, arm in found for v in values if arm.causal == (None, ()))
        plain = [replace(arm, scale=None, causal=None) for _, arm in found]
        if not all(_same(arm, plain[0]) for arm in plain):
            return None
        if any(arm.causal not in (None, (None, ())) for _, arm in found):
            return None
        scale = first.scale
        if any(not _equal(arm.scale, scale) for _, arm in found):
            one = Const(Decimal(1), select.span)
            arms_of = tuple((values, arm.scale or one) for values, arm in found)
            scale = Select(select.axis, arms_of, select.span)
        return replace(first, scale=scale, causal=(select.axis, causal) if causal else None)


def _masked(scores: _Scores | None, mask: Expr) -> _Scores | None:
    if scores is None or scores.bias is not None or scores.seen is not None:
        return None
    if isinstance(mask, Ref) and mask.kind == "input":
        return replace(scores, bias=mask.name)
    if isinstance(mask, Op) and mask.op == "log":
        truths = bare(mask.args[0])
        if isinstance(truths, Ref) and truths.kind == "input":
            return replace(scores, seen=truths.name)
    return None


def _same(one: _Scores, other: _Scores) -> bool:
    pairs = ((one.q, other.q), (one.k, other.k), (one.scale, other.scale))
    rest = (one.bias, one.seen, one.causal) == (other.bias, other.seen, other.causal)
    return rest and all(_equal(a, b) for a, b in pairs)


def _equal(one: Expr | None, other: Expr | None) -> bool:
    """Whether two expressions are one, wherever they stand."""
    match one, other:
        case None, None:
            return True
        case Op(), Op():
            alike = (one.op, one.attrs, len(one.args)) == (other.op, other.attrs, len(other.args))
            return alike and all(map(_equal, one.args, other.args))
        case Ref(), Ref():
            return (one.name, one.kind, one.index) == (other.name, other.kind, other.index)
        case Select(), Select():
            mine, theirs = dict(one.arms), dict(other.arms)
            alike = one.axis == other.axis and mine.keys() == theirs.keys()
            return alike and all(_equal(mine[key], theirs[key]) for key in mine)
        case (None, _) | (_, None):
            return False
        case _:
            return one is not None and other is not None and _number(one) == _number(other)


def _number(expr: Expr) -> object:
    value = getattr(expr, "value", None)
    return (type(expr), value if value is not None else getattr(expr, "poly", None))


# ---------------------------------------------------------------- the delta rule


@dataclass(frozen=True)
class DeltaRule:
    """A recurrence ``s' = d s + k (b (v - (d s) k))``, read by ``q`` at each step.

    queries, keys, values, strength  the names of what is walked, time along axis 1
    log_decay  what ``d`` is the exponential of
    start      the state that comes in
    result     (what is emitted, what is carried out)
    """

    scan: Scan
    queries: str
    keys: str
    values: str
    strength: str
    log_decay: Expr
    start: Expr
    result: tuple[str, str]


def delta_rule(body: Sequence[Stmt]) -> DeltaRule | None:
    """The one gated delta recurrence of some statements."""
    found = [_delta_rule(body, place) for place in range(len(body))]
    whole = [region for region in found if region is not None]
    return whole[0] if len(whole) == 1 else None


def _delta_rule(body: Sequence[Stmt], place: int) -> DeltaRule | None:
    scan = body[place]
    if not isinstance(scan, Scan) or len(scan.carries) != 1 or len(scan.body) != 5:
        return None
    if any(axis != 1 for _, axis in scan.over):
        return None
    lets = [stmt for stmt in scan.body if isinstance(stmt, Let) and stmt.when is None]
    if [let.kind for let in lets] != ["let", "let", "let", "next", "emit"]:
        return None
    names = _step(lets, scan.carries[0][0])
    if names is None:
        return None
    decayed = _defined(body, names["decay"], place)
    decay = bare(decayed[1].value) if decayed is not None and decayed[1].when is None else None
    if not isinstance(decay, Op) or decay.op != "exp":
        return None
    state, start = scan.carries[0]
    walked = (names["q"], names["k"], names["v"], names["b"])
    return DeltaRule(scan, *walked, decay.args[0], start, (lets[4].name, state))


def _step(lets: Sequence[Let], state: str) -> Mapping[str, str] | None:
    """The names of what a step of the rule reads, where its five definitions are just that."""
    kept, recalled, delta, following, emitted = lets
    names: dict[str, str] = {}
    reads = (
        _is(kept.value, "abcd,ab->abcd", ("carry", state), ("over", "decay"), names),
        _is(recalled.value, "abcd,abc->abd", ("value", kept.name), ("over", "k"), names),
        following.name == state,
        _is(emitted.value, "abcd,abc->abd", ("carry", state), ("over", "q"), names),
    )
    if not all(reads):
        return None
    rest, written = bare(delta.value), bare(following.value)
    if not isinstance(rest, Op) or rest.op != "contract" or _letters(rest) != "abc,ab->abc":
        return None
    left = bare(rest.args[0])
    minus = isinstance(left, Op) and left.op == "sub"
    if not minus or not isinstance(left, Op) or not isinstance(written, Op) or written.op != "add":
        return None
    more = (
        _named(left.args[0], ("over", "v"), names),
        _named(left.args[1], ("value", recalled.name), names),
        _named(rest.args[1], ("over", "b"), names),
        _named(written.args[0], ("value", kept.name), names),
        _is(written.args[1], "abc,abd->abcd", ("over", "k"), ("value", delta.name), names),
    )
    return names if all(more) else None


def _is(
    expr: Expr, letters: str, left: tuple[str, str], right: tuple[str, str], names: dict[str, str]
) -> bool:
    expr = bare(expr)
    if not isinstance(expr, Op) or expr.op != "contract" or _letters(expr) != letters:
        return False
    return _named(expr.args[0], left, names) and _named(expr.args[1], right, names)


def _named(expr: Expr, wanted: tuple[str, str], names: dict[str, str]) -> bool:
    """Whether an operand is the value wanted; of something walked, the same in every place."""
    kind, name = wanted
    expr = bare(expr)
    if not isinstance(expr, Ref) or expr.kind != kind:
        return False
    return expr.name == (names.setdefault(name, expr.name) if kind == "over" else name)


def _letters(op: Op) -> str:
    """An equation with its letters named in the order they come in."""
    order: dict[str, str] = {}
    equation = str(op.attr("equation", ""))
    for letter in filter(str.isalpha, equation):
        order.setdefault(letter, chr(ord("a") + len(order)))
    return "".join(order.get(letter, letter) for letter in equation)


REGIONS = {"sdpa": attention, "chunked_delta": delta_rule}
"""Lowerings that stand for several statements -> how these are found."""

REGION_TEXTS = {
    "sdpa": "softmax(q @ transpose(k) * scale + mask) @ v, with a mask that is an input",
    "chunked_delta": "a scan whose step is the gated delta rule, walked along axis 1",
}
