"""Which rung was fastest on this box: only a measurement moves one to the front."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import types

import pytest
import torch

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.rungs import ladder, rungcache
from frtspec.runtime.rungs.rungcache import Key, RungCache
from frtspec.runtime.seats.guard import Band
from tests.runtime import hosts_small as small
from tests.runtime.calibration.support import build

LOCAL = "local some/kernels@v1"


class TwoRungs(small.LinearFp8Static):
    """A product with two rungs that both serve here."""

    SPEC = dataclasses.replace(
        small.LinearFp8Static.SPEC,
        rungs=(
            rt.RungSpec("torch", run="run_emulate"),
            rt.RungSpec("local", run="run_emulate", package="some/kernels", version=1),
            rt.RungSpec("emulate", run="run_emulate"),
        ),
    )


def binding(**spec):
    """The small binding with that impl, its spec changed where told."""

    class Impl(TwoRungs):
        SPEC = dataclasses.replace(TwoRungs.SPEC, **spec)

    routes = tuple(
        dataclasses.replace(r, impl=Impl) if r.structure == "linear_proj" else r
        for r in small.FP8_STATIC.routes
    )
    scheme = dataclasses.replace(small.FP8_STATIC, routes=routes)
    return dataclasses.replace(small.BINDING, schemes={"fp8_static": scheme, "none": small.NONE})


@pytest.fixture(autouse=True)
def kernels_are_there(monkeypatch):
    loaded = types.SimpleNamespace(module=None, origin="pretended")
    monkeypatch.setattr(ladder.kernels, "load", lambda *_: loaded)


def bound(path, binding=binding(), **options):  # noqa: B008 - one frozen binding serves all
    plan = build(
        small.tiny_decoder(),
        binding=binding,
        structures=("linear_proj",),
        decisions=path,
        **{"rungs": None, **options},
    )
    return plan.seat("o[0]").built, plan


def key(**changes):
    model = small.tiny_decoder()
    seat = small.seat_named(model, "o[0]")
    found = Key.of(seat, TwoRungs.SPEC, seat.dims, Band(), torch.device("cpu"))
    return dataclasses.replace(found, **changes)


LABELS = [rung.label for rung in TwoRungs.SPEC.rungs]


@pytest.fixture
def path(tmp_path):
    """A cache in which the second rung won."""
    file = tmp_path / "rungs.json"
    times = {"torch": 0.5, LOCAL: 0.25}
    RungCache(file).record(key(), times, declared=LABELS, receipt="ab" * 32)
    return file


# ---------------------------------------------------------------- used


def test_without_a_decision_the_order_decides(tmp_path):
    assert bound(None)[0].rung.label == "torch"
    assert bound(tmp_path / "none.json")[0].rung.label == "torch"
    assert not list(tmp_path.iterdir()), "attaching writes no decision"


def test_the_rung_that_won_comes_first_and_says_why(path):
    built, _ = bound(path)
    assert built.rung.label == LOCAL
    (row,) = built.trail
    assert "torch 0.5 ms, local some/kernels@v1 0.25 ms, receipt abababababab" in row.reason


def test_what_the_caller_asks_for_comes_before_it(path):
    built, _ = bound(path, rungs=("torch",))
    assert built.rung.label == "torch"
    assert (built.trail[0].what, built.trail[0].code) == (LOCAL, "rung.not_asked")


def test_a_winner_that_is_not_admitted_any_more_falls_through(path, monkeypatch):
    def gone(*_):
        raise rt.Refusal("kernel.missing", "no build for this torch", fix="none")

    monkeypatch.setattr(ladder.kernels, "load", gone)
    built, _ = bound(path)
    assert built.rung.label == "torch"
    assert [(row.what, row.code) for row in built.trail] == [
        (LOCAL, "kernel.missing"),
        ("torch", "rung.bound"),
    ]


@pytest.mark.parametrize(
    "changed",
    [
        {"device": "cuda NVIDIA H200 9.0"},
        {"driver": "550.1"},
        {"packages": "torch 1.0"},
        {"shape": "K=1 N=1 rows 1.."},
        {"impl": "x"},
        {"structure": "x"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_decision_of_anything_else_is_none(tmp_path, changed):
    file = tmp_path / "rungs.json"
    RungCache(file).record(key(**changed), {LOCAL: 1.0}, declared=LABELS)
    built, plan = bound(file)
    assert built.rung.label == "torch"
    assert not any("rungs.json" in text for text in plan.calibration.diagnostics)


def test_a_moved_contract_forgets(path):
    assert bound(path, binding(contract_digest="1" * 64))[0].rung.label == "torch"
    assert set(vars(key())) == {"device", "driver", "packages", "shape", "impl", "structure"}
    assert f"torch {torch.__version__}" in key().packages and "rows 1.." in key().shape


def test_auto_reads_the_cache_folder(path, monkeypatch):
    monkeypatch.setenv("FRTSPEC_CACHE_DIR", str(path.parent))
    assert bound("auto")[0].rung.label == LOCAL
    with pytest.raises(rt.Refusal) as caught:
        bound(5)
    assert caught.value.code == "option.decisions"


# ---------------------------------------------------------------- written


@pytest.mark.parametrize(
    "times, code",
    [
        ({"torch": 1.0, "hub typo@v1": 0.1}, "decisions.undeclared"),
        ({"torch": 1.0, "emulate": 0.1}, "decisions.emulate"),
        ({"torch": float("nan")}, "decisions.times"),
        ({"torch": 0.0}, "decisions.times"),
        ({}, "decisions.times"),
    ],
)
def test_what_is_no_decision_is_not_kept(tmp_path, times, code):
    with pytest.raises(rt.Refusal) as caught:
        RungCache(tmp_path / "rungs.json").record(key(), times, declared=LABELS)
    assert caught.value.code == code and not list(tmp_path.iterdir())


def test_a_later_measurement_replaces_an_earlier_one_of_its_key_only(path):
    RungCache(path).record(key(driver="other"), {LOCAL: 1.0}, declared=LABELS)
    RungCache(path).record(key(), {"torch": 0.1, LOCAL: 0.25}, declared=LABELS)
    assert RungCache(path).find(key()).winner == "torch"
    assert RungCache(path).find(key(driver="other")).winner == LOCAL


def _record(path, number):
    for step in range(10):
        RungCache(path).record(
            key(driver=f"{number} {step}"), {"torch": 1.0 + step}, declared=LABELS
        )


def test_two_writers_lose_nothing(tmp_path):
    file, fork = tmp_path / "rungs.json", multiprocessing.get_context("fork")
    writers = [fork.Process(target=_record, args=(file, number)) for number in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    cache = RungCache(file)
    for number in range(2):
        for step in range(10):
            assert cache.find(key(driver=f"{number} {step}")).times_ms == {"torch": 1.0 + step}


# ---------------------------------------------------------------- damaged


def _edited(path, change):
    found = json.loads(path.read_text())
    change(found)
    found["digest"] = receipt.digest({k: v for k, v in found.items() if k != "digest"})
    path.write_text(json.dumps(found))


def _winner(found):
    next(iter(found["decisions"].values()))["winner"] = "hub other@v1"


def _key(found):
    next(iter(found["decisions"].values()))["key"]["driver"] = "other"


DAMAGE = {
    "cut": lambda path: path.write_text(path.read_text()[:-9]),
    "list": lambda path: path.write_text("[]"),
    "edited": lambda path: path.write_text(path.read_text().replace("0.25", "0.35")),
    "schema": lambda path: path.write_text(path.read_text().replace("rungs/1", "rungs/0")),
    "winner": lambda path: _edited(path, _winner),
    "key": lambda path: _edited(path, _key),
    "rows": lambda path: _edited(path, lambda found: found.update(decisions=[1])),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_kept_aside_and_told(path, damage):
    damage(path)
    before = path.read_bytes()
    built, plan = bound(path)
    assert built.rung.label == "torch"
    assert any("rungs.json is damaged" in text for text in plan.calibration.diagnostics)
    kept = path.with_name("rungs.json.corrupt")
    assert kept.read_bytes() == before and not path.exists()
    RungCache(path).record(key(), {LOCAL: 0.25}, declared=LABELS)
    assert bound(path)[0].rung.label == LOCAL and kept.exists()


def test_a_file_that_cannot_be_read_stops_nothing(tmp_path):
    (tmp_path / "rungs.json").mkdir()
    built, plan = bound(tmp_path / "rungs.json")
    assert built.rung.label == "torch" and (tmp_path / "rungs.json").is_dir()
    assert any("can't be read" in text for text in plan.calibration.diagnostics)


def test_the_driver_is_told_apart(tmp_path, monkeypatch):
    text = (
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n"
        "GCC version:  gcc version 12.3.0\n"
    )
    monkeypatch.setattr(rungcache, "_text", lambda path: text)
    assert rungcache._driver(torch.device("cuda")) == "570.86.15"
    assert rungcache._driver(torch.device("cpu")) == ""
