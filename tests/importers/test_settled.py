"""What a verified import says beyond its source, held against the host's own class.

The binding is taken as committed; its sizes alone are made small, and the class is built
with them. Paths, slots, layouts, points, facts, eps and the norm's rounding are looked up
on the model, each seat has to run, and its reference has to give what the host computes.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hosts import lerobot_overlay, overlay, tiny

from frtspec.importers.flashrt.hosts import SETTLED
from frtspec.live.inmemory import bindings_of
from frtspec.live.verify import problems, verify
from frtspec.runtime.hosts import facts
from importers import kit

FAMILIES = {
    "qwen25_15b": tiny.QWEN2,
    "qwen3_8b": tiny.QWEN3,
    "qwen3_vl_8b_text": tiny.QWEN3_VL,
    "qwen3_vl_8b_vision": tiny.QWEN3_VL,
}
POLICIES = {
    "pi05_prefix": ("pi05", (64, 96, 2)),
    "pi05_vision": ("pi05", (32, 4304, 2)),
    "smolvla_vision": ("smolvla", (32, 48, 2)),
}
"""Of lerobot 0.5.1: the policy, and its sizes as `lerobot_models` builds it."""

SIZES = re.compile(r"dims \{ D = \d+, F = \d+, L = \d+ \}")


def test_each_settled_binding_is_tested_and_is_what_the_import_calls_verified() -> None:
    drafts = {
        name.removeprefix("flashrt_").removesuffix(".frt")
        for name, text in kit.imported().files.items()
        if "status draft" in text
    }
    assert drafts == set(SETTLED) == {*FAMILIES, *POLICIES}


def small(
    name: str, folder: Path, sizes: tuple[int, int, int] = (tiny.D, tiny.F, tiny.LAYERS)
) -> Path:
    """The committed binding with the sizes of the tiny hosts."""
    text = (kit.COMMITTED / f"flashrt_{name}.frt").read_text("utf-8")
    written = "dims {{ D = {}, F = {}, L = {} }}".format(*sizes)
    text, count = SIZES.subn(written, text)
    assert count == 1
    path = folder / "small.frt"
    path.write_text(text.replace(f"binding flashrt_{name}", "binding small"), "utf-8")
    return path


@pytest.mark.parametrize("name", FAMILIES)
def test_all_that_it_says_holds_on_the_class(name: str, tmp_path: Path) -> None:
    (binding,) = bindings_of(small(name, tmp_path)).values()
    family = FAMILIES[name]
    model = family.model()
    report = verify(binding, model, lambda s: model(**s), observations=family.samples(2))
    assert report.ok, report.text()
    assert len(report.seats) == tiny.LAYERS
    for seat in report.seats:
        assert seat.calls == (1, 1)
        assert seat.reference is not None and seat.reference < 1e-5
        assert all(slot.proof for slot in seat.slots)
        assert all(point.hits == (1, 1) for point in seat.points)
    assert not [p for found in problems(report).values() for p in found]


@pytest.mark.parametrize("name", [n for n in FAMILIES if "norm_rounding" in SETTLED[n].variants])
def test_the_norm_rounds_where_it_says(name: str) -> None:
    """In float32 the two orders are one, so the norm itself is probed, in bfloat16."""
    settled = SETTLED[name]
    layer = FAMILIES[name].model().get_submodule(settled.layer.replace("{i}", "0"))
    found = facts.norm_rounding_of(layer.get_submodule("post_attention_layernorm"))
    assert found == settled.variants["norm_rounding"]


def test_the_eps_that_is_left_to_the_structure_is_the_hosts() -> None:
    """Qwen3-VL's vision tower has its eps in the code and not in the config."""
    (settled,) = [s for s in SETTLED.values() if s.eps is None]
    layer = tiny.QWEN3_VL.model().get_submodule(settled.layer.replace("{i}", "0"))
    program = kit.world().program
    (eps,) = program.structures["vision_ffn", 2].params
    assert layer.get_submodule("norm2").eps == float(eps.default)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_it_holds_on_the_oldest_version_too(name: str, tmp_path: Path) -> None:
    """In an overlay, in a process of its own; the newest is the installed one."""
    try:
        version, _ = overlay.ends("transformers", SETTLED[name].versions)
        folder = overlay.overlay("transformers", version)
    except overlay.NotAvailable as reason:
        pytest.skip(f"pip can't get it: {reason}")
    report = overlay.verified(folder, str(small(name, tmp_path)), FAMILIES[name].name)
    assert report["ok"] and report["found"] == str(version)
    assert [seat["calls"] for seat in report["seats"]] == [[1, 1]] * tiny.LAYERS


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_all_that_it_says_holds_on_lerobots_class(name: str, tmp_path: Path) -> None:
    """In an overlay of lerobot 0.5.1 and the transformers that it pins."""
    policy, sizes = POLICIES[name]
    report = lerobot_overlay.report("0.5.1", policy, str(small(name, tmp_path, sizes)))
    told = [p for seat in report["seats"] for p in seat["problems"]] + report["problems"]
    assert told == [] and report["ok"]
    assert [seat["calls"] for seat in report["seats"]] == [[1, 1]] * sizes[-1]
    for seat in report["seats"]:
        assert seat["reference"] is not None and seat["reference"] < 1e-5
        assert all(point["hits"] == [1, 1] for point in seat["points"])
