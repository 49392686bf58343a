"""Schemes as Python: the routes that a package holds say what the spec says."""

from __future__ import annotations

import pytest

from frtspec.codegen.schemeview import scheme_view
from frtspec.ir.decl import Scheme
from frtspec.runtime import Route, Stat, decisions
from tests.sema.helpers import analysed

FRAME = """frt 1
structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w [D, F]
  reference {
    point x_in = x
    yield y = x_in @ w
  }
}
impl fp8 for s version 1 {
  param alpha = 0.5 from 0 to 1
  param least = 0.25
  pack  weight = quantize(balance(w.T, in_b), fp8_e4m3, per tensor)
  scale in_b   = balance(x_in, alpha, least, 4)
  rung emulate
}
scheme decided {
  at s version 1 {
    x_in: amax per channel,
    x_in: amax per block 16,
    x_in: second_moment per channel,
    x_in: histogram(bins = 256)
  }
  keep when HERE and spread(x_in) > 0 and rms(x_in) > 0 and quantile(x_in, 0.5) > 0 and amax > 0
  use fp8 with (alpha = 0.75)
  otherwise keep "no"
}
"""

REST = " and spread(x_in) > 0 and rms(x_in) > 0 and quantile(x_in, 0.5) > 0 and amax > 0"


IMPL = analysed(FRAME.replace("HERE", "D > 3"))[0].program.impls["s", 1, None, "fp8"]


def scheme_of(condition: str) -> Scheme:
    analysis, syntax = analysed(FRAME.replace("HERE", condition))
    assert not syntax and not analysis.diagnostics, (syntax, analysis.diagnostics)
    return analysis.program.schemes["decided"]


def route_of(condition: str) -> Route:
    """The generated route, evaluated with the runtime's own names."""
    scheme = scheme_of(condition)
    view = scheme_view(scheme, {id(IMPL): "Fp8"}, lambda _: IMPL, [], [])
    (text,) = view.routes
    found = eval(text, {"Route": Route, "Stat": Stat, "decisions": decisions, "Fp8": None})
    assert isinstance(found, Route)
    return found


CONDITIONS = {
    "amax(x_in) > 20 * median(amax)": None,
    "dispersion(x_in) >= 3.5": None,
    "max(M) / 2 < D + F * 2": None,
    "min(M) <= (D - F) - 3": "min(M) <= D - F - 3",
    "D - (F - 3) > (D + F) * 2": "D - (F - 3) > (D + F) * 2",
    "D / (F * 2) > 0.001": None,
    "capability < 8.9": None,
    "not capability < 8.9": "capability >= 8.9",
    "8 < D < F": "D > 8 and D < F",
    "not (D < 8 or F > 3)": "D >= 8 and F <= 3",
    "(D < 8 or F > 3)": None,
    "not (D < 8 and F > 3)": "(D >= 8 or F <= 3)",
    "not (8 < D < F)": "(D <= 8 or D >= F)",
}


@pytest.mark.parametrize(("written", "meant"), CONDITIONS.items(), ids=CONDITIONS)
def test_a_condition_means_at_run_time_what_is_written(written: str, meant: str | None) -> None:
    condition = route_of(written).keep_when
    assert condition is not None
    assert condition.text == (meant or written) + REST


def test_a_route_has_its_statistics_parameters_and_version() -> None:
    route = route_of("D > 3")
    assert route.measured() == {
        "x_in": (
            Stat("amax", "channel"),
            Stat("amax", "block", size=16),
            Stat("second_moment", "channel"),
            Stat("histogram", "tensor", bins=256),
        )
    }
    assert route.params == {"alpha": 0.75, "least": 0.25}
    assert (route.structure, route.seam, route.version) == ("s", None, 1)


def test_the_contract_tells_conditions_and_parameters_apart() -> None:
    digests = {
        scheme_of(text).origin.contract_digest
        for text in ("D > 3", "D > 4", "D >= 3", "F > 3", "(D > 3 or F > 3)", "F > 3 and D > 3")
    }
    assert len(digests) == 6
    same = {scheme_of(t).origin.contract_digest for t in ("D > 3 and F > 3", "F > 3 and D > 3")}
    assert len(same) == 1
