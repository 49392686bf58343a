"""Saved calibrations: the same scales again, and nobody else's."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.calibration import file as calibration_file
from frtspec.runtime.calibration import key as calibration_key
from frtspec.runtime.calibration import state as calibration_state
from frtspec.runtime.calibration.file import ENTRY
from frtspec.runtime.observation import observe
from tests.runtime import hosts_small as small
from tests.runtime.calibration.support import BATCHES, EVERY, attach, build, scales, with_stats


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A file of the small host's calibration, and the scales that were made of it."""
    model = small.tiny_decoder()
    plan = build(model)
    path = plan.calibration.save(tmp_path_factory.mktemp("saved") / "tiny.safetensors")
    plan.detach()
    return path, scales(plan)


@pytest.fixture
def mine(saved, tmp_path):
    """A copy of the file, to be damaged."""
    copy = tmp_path / saved[0].name
    copy.write_bytes(saved[0].read_bytes())
    return copy


def refusal(*args, **options):
    with pytest.raises(rt.Refusal) as caught:
        build(*args, **options)
    return caught.value


# ---------------------------------------------------------------- used


def test_a_saved_calibration_gives_the_same_scales_whatever_this_run_sees(saved):
    path, wanted = saved
    plan = build(small.tiny_decoder(), small.token_batches(1, seed=77), calibration=path)
    assert scales(plan) == wanted and any(wanted.values())
    assert plan.calibration.samples == len(BATCHES)
    assert plan.calibration.origin == "file" and len(plan.calibration.digest) == 64
    assert plan.receipt["plan"]["calibration"]["origin"] == "file"
    assert receipt.verify(plan.receipt)


def test_attach_judges_on_this_runs_samples(saved):
    plan = attach(small.tiny_decoder(), calibration=str(saved[0]))
    assert plan.bound and plan.calibration.held_out and plan.calibration.judged == 2
    plan = attach(small.tiny_decoder(), calibration=saved[0], held_out=None)
    assert plan.bound and plan.calibration.label == "fit residual"
    assert plan.calibration.judged == len(BATCHES)


def test_every_statistic_survives_the_file(tmp_path):
    binding, model = with_stats(*EVERY), small.tiny_decoder()
    plan = build(model, binding=binding)
    path = plan.calibration.save(tmp_path / "all.safetensors")
    before, after = plan.calibration.seal(), rt.Calibration.load(path)
    assert calibration_file.digest(before) == calibration_file.digest(after)
    assert after.key == before.key and after.samples == before.samples == len(BATCHES)
    plan.detach()
    for percentile in (50.0, 99.9):
        fresh = build(small.tiny_decoder(), binding=binding, percentile=percentile)
        again = build(
            small.tiny_decoder(), BATCHES[:1], binding, percentile=percentile, calibration=after
        )
        assert scales(again) == scales(fresh)
        assert again.precision_spec == fresh.precision_spec


def test_a_plan_can_hand_its_calibration_on():
    first = build(small.tiny_decoder())
    second = build(small.tiny_decoder(), BATCHES[:1], calibration=first.calibration)
    assert scales(second) == scales(first) and second.calibration.origin == "given"


def test_a_seat_that_could_not_be_calibrated_is_refused_from_the_file_too(tmp_path):
    model = small.tiny_decoder()
    with torch.no_grad():
        model.layers[0].self_attn.v_proj.weight.zero_()
    plan = build(model)
    told = plan.seat("o[0]")
    assert told.code == "calibration.zero"
    path = plan.calibration.save(tmp_path / "zero.safetensors")
    plan.detach()
    again = build(model, calibration=path).seat("o[0]")
    assert (again.state, again.code, again.reason) == ("refused", told.code, told.reason)


def test_a_seat_that_was_not_measured_is_refused_by_name(tmp_path):
    plan = build(small.tiny_decoder(), structures=("decoder_ffn",))
    path = plan.calibration.save(tmp_path / "ffn.safetensors")
    again = build(small.tiny_decoder(), calibration=path)
    assert set(again.bound) == {"ffn[0]", "ffn[1]"}
    assert again.seat("o[0]").code == "calibration.missing"


# ---------------------------------------------------------------- whose it is


def test_one_late_weight_makes_another_checkpoint(saved):
    model = small.tiny_decoder()
    model.layers[-1].mlp.down_proj.weight.data[-1, -1] += 1e-3
    found = refusal(model, calibration=saved[0])
    assert found.code == "calibration.key" and found.shape == {"differs": "weights"}
    for digest in (
        calibration_key.weights_digest(small.tiny_decoder()),
        calibration_key.weights_digest(model),
    ):
        assert digest in found.what


@pytest.mark.parametrize("through", ["data", "no_grad"])
def test_an_edit_is_found_although_digests_are_remembered(through):
    model = small.tiny_decoder()
    before = calibration_key.weights_digest(model)
    assert calibration_key.weights_digest(model) == before
    weight = model.layers[-1].mlp.down_proj.weight
    with torch.no_grad():
        target = weight.data if through == "data" else weight
        target[[0, 1]] = target[[1, 0]]
    assert calibration_key.weights_digest(model) != before


def test_what_is_hashed_in_slices_is_the_whole(monkeypatch):
    whole = calibration_key.weights_digest(small.tiny_decoder())
    monkeypatch.setattr(calibration_key, "SLICE", 100)
    assert calibration_key.weights_digest(small.tiny_decoder()) == whole


def _moved(**changes):
    return dataclasses.replace(small.BINDING, **changes)


def _other_impl(spec):
    class Other(small.FfnFp8Static):
        SPEC = dataclasses.replace(small.FfnFp8Static.SPEC, **spec)

    routes = tuple(
        dataclasses.replace(r, impl=Other) if r.structure == "decoder_ffn" else r
        for r in small.FP8_STATIC.routes
    )
    scheme = dataclasses.replace(small.FP8_STATIC, routes=routes)
    return _moved(schemes={"fp8_static": scheme, "none": small.NONE})


def _other_structure():
    def seats(model):
        other = dataclasses.replace(small.DECODER_FFN, contract_digest="1" * 64)
        return [
            dataclasses.replace(s, structure=other) if s.structure is small.DECODER_FFN else s
            for s in small.tiny_seats(model)
        ]

    return _moved(seats=seats)


MOVED = dataclasses.replace(small.FP8_STATIC, contract_digest="1" * 64)


@pytest.mark.parametrize(
    "binding, differs",
    [
        (_moved(contract_digest="1" * 64), "binding"),
        (_moved(schemes={"fp8_static": MOVED, "none": small.NONE}), "scheme"),
        (_other_structure(), "structures"),
        (_other_impl({"contract_digest": "1" * 64}), "impls"),
        (_moved(seats=lambda model: small.tiny_seats(model)[:-1]), "seats"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_differs_in_the_specs_is_named(saved, binding, differs):
    found = refusal(small.tiny_decoder(), binding=binding, calibration=saved[0])
    assert found.code == "calibration.key" and found.shape == {"differs": differs}
    assert found.fix == calibration_key.FIXES[differs]


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(calibration_key.Key)])
def test_each_field_of_the_key_is_compared_by_itself(saved, name):
    """A file that differs from this host in one field alone, whichever it is."""
    loaded = rt.Calibration.load(saved[0])
    other = dataclasses.replace(loaded.key, **{name: "something else"})
    found = refusal(small.tiny_decoder(), calibration=dataclasses.replace(loaded, key=other))
    assert found.code == "calibration.key" and found.shape == {"differs": name}
    assert f"{name} is something else there and {getattr(loaded.key, name)} here" in found.what
    assert found.fix == calibration_key.FIXES[name]
    assert other.digest != loaded.key.digest  # so that "auto" looks for another file


def test_several_differing_fields_are_all_named(saved):
    loaded = rt.Calibration.load(saved[0])
    other = dataclasses.replace(loaded.key, weights="w", scheme="s")
    found = refusal(small.tiny_decoder(), calibration=dataclasses.replace(loaded, key=other))
    assert found.shape == {"differs": "weights+scheme"}


def test_another_dtype_host_or_package_is_named(saved, monkeypatch):
    found = refusal(small.tiny_decoder().to(torch.bfloat16), calibration=saved[0])
    assert found.shape["differs"] == "weights+dtype"
    assert "dtype is float32 there and bfloat16 here" in found.what

    class TinyDecoder(small.TinyDecoder):
        pass

    model = small.tiny_decoder()
    model.__class__ = TinyDecoder
    assert refusal(model, calibration=saved[0]).shape["differs"] == "host"
    monkeypatch.setattr(calibration_key, "version", lambda name: "9.9")
    found = refusal(small.tiny_decoder(), calibration=saved[0])
    assert found.shape["differs"] == "package" and "torch 9.9 here" in found.what


def test_other_steps_a_sample_are_refused(saved):
    model = small.tiny_decoder()
    with pytest.raises(rt.Refusal) as caught:
        rt.build(
            small.BINDING,
            model,
            lambda ids: [model(ids) for _ in range(3)][-1],
            observations=BATCHES,
            scheme="fp8_static",
            rungs=("emulate",),
            calibration=saved[0],
        )
    assert caught.value.code == "calibration.steps"
    assert "ran 1 times in every calibrated sample and 3 times here" in caught.value.what


def test_weights_that_changed_since_cannot_be_saved(tmp_path):
    model = small.tiny_decoder()
    plan = build(model)
    plan.detach()
    with torch.no_grad():
        model.layers[0].mlp.down_proj.weight.mul_(2)
    with pytest.raises(rt.Refusal) as caught:
        plan.calibration.save(tmp_path / "x.safetensors")
    assert caught.value.code == "calibration.weights_changed"
    assert "layers.0.mlp.down_proj.weight" in caught.value.what and not list(tmp_path.iterdir())


def test_meta_weights_have_no_identity():
    with pytest.raises(rt.Refusal) as caught:
        calibration_key.weights_digest(torch.nn.Linear(4, 4, device="meta"))
    assert caught.value.code == "calibration.weights"


# ---------------------------------------------------------------- damaged files


def rewritten(path, change=None, tensors=None):
    """The file with another document or other tensors; sealed anew where ``change`` says."""
    with safe_open(str(path), "pt") as file:
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        document = json.loads(file.metadata()[ENTRY])
    if tensors is not None:
        tensors(found)
    if change is not None:
        change(document, found)
    save_file(found, str(path), metadata={ENTRY: json.dumps(document)})


def resealed(document, tensors):
    document["tensors"] = {n: calibration_file._tensor_digest(v) for n, v in tensors.items()}
    body = {name: value for name, value in document.items() if name != "digest"}
    document["digest"] = receipt.digest(body)


def poisoned(value):
    def change(document, tensors):
        tensors["statistics/ffn[0]/act_after_mul/0/largest"][1:] = value
        if value == 0.0:
            tensors["statistics/ffn[0]/act_after_mul/0/largest"][:] = 0.0
        resealed(document, tensors)

    return lambda path: rewritten(path, change)


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 0x40
    path.write_bytes(data)


DAMAGE = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "empty": lambda path: path.write_bytes(b""),
    "other": lambda path: path.write_text("{}"),
    "bit": flipped,
    "samples": lambda path: rewritten(path, lambda doc, _: doc.update(samples=5)),
    "key": lambda path: rewritten(path, lambda doc, _: doc["key"].update(dtype="float16")),
    "no field": lambda path: rewritten(path, lambda doc, _: doc.pop("runs")),
    "no tensor": lambda path: rewritten(path, tensors=lambda found: found.popitem()),
    "nan": poisoned(float("nan")),
    "inf": poisoned(float("inf")),
    "zero": poisoned(0.0),
    "negative": poisoned(-1.0),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_file_is_kept_aside_and_reported(mine, damage):
    damage(mine)
    bytes_before = mine.read_bytes()
    found = refusal(small.tiny_decoder(), calibration=mine)
    assert found.code == "calibration.corrupt"
    kept = mine.with_name(f"{mine.name}.corrupt")
    assert kept.name in found.what and kept.read_bytes() == bytes_before and not mine.exists()


def test_a_second_damaged_file_does_not_replace_the_first(mine):
    for text in ("one", "two"):
        mine.write_text(text)
        refusal(small.tiny_decoder(), calibration=mine)
    assert sorted(p.read_text() for p in mine.parent.glob("*.corrupt*")) == ["one", "two"]


def test_another_schema_is_no_damage(mine):
    rewritten(mine, lambda doc, _: doc.update(schema="frtspec.calibration/0"))
    found = refusal(small.tiny_decoder(), calibration=mine)
    assert found.code == "calibration.schema" and "frtspec.calibration/0" in found.what
    assert mine.exists()


def test_a_file_that_is_not_there(tmp_path):
    found = refusal(small.tiny_decoder(), calibration=tmp_path / "none.safetensors")
    assert found.code == "calibration.file"
    assert refusal(small.tiny_decoder(), calibration=5).code == "option.calibration"


def test_the_document_fits_its_published_schema(saved):
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(calibration_file.schema())
    with safe_open(str(saved[0]), "pt") as file:
        document = json.loads(file.metadata()[ENTRY])
        assert set(document["tensors"]) == set(file.keys())
    assert not list(Draft202012Validator(calibration_file.schema()).iter_errors(document))
    assert set(document["key"]) == {f.name for f in dataclasses.fields(calibration_key.Key)}


# ---------------------------------------------------------------- the cache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FRTSPEC_CACHE_DIR", str(tmp_path))
    return tmp_path / "calibrations"


def test_auto_calibrates_once(cache):
    pulled = []

    def counted():
        for ids in BATCHES:
            pulled.append(1)
            yield ids

    first = build(small.tiny_decoder(), counted(), calibration="auto")
    assert first.calibration.origin == "measured" and len(pulled) == len(BATCHES)
    (kept,) = cache.glob("*.safetensors")
    pulled.clear()
    second = build(small.tiny_decoder(), counted(), calibration="auto")
    assert second.calibration.origin == "cache" and len(pulled) == 1
    assert scales(second) == scales(first)
    assert second.calibration.digest == first.calibration.digest
    build(small.tiny_decoder(seed=5), calibration="auto")
    assert len(list(cache.glob("*.safetensors"))) == 2 and kept.exists()


def test_auto_keeps_a_damaged_file_aside_and_says_so(cache):
    build(small.tiny_decoder(), calibration="auto")
    (kept,) = cache.glob("*.safetensors")
    kept.write_text("not much")
    plan = build(small.tiny_decoder(), calibration="auto")
    assert plan.calibration.origin == "measured" and kept.exists()
    assert kept.with_name(f"{kept.name}.corrupt").read_text() == "not much"
    assert any("is no whole calibration" in text for text in plan.calibration.diagnostics)
    assert build(small.tiny_decoder(), calibration="auto").calibration.origin == "cache"


def test_auto_measures_anew_for_other_steps(cache):
    build(small.tiny_decoder(), calibration="auto")
    model = small.tiny_decoder()
    plan = rt.build(
        small.BINDING,
        model,
        lambda ids: [model(ids) for _ in range(2)][-1],
        observations=BATCHES,
        scheme="fp8_static",
        rungs=("emulate",),
        calibration="auto",
    )
    assert plan.calibration.origin == "measured" and plan.calibration.samples == len(BATCHES)
    assert any("measured anew" in text for text in plan.calibration.diagnostics)


def test_auto_measures_anew_what_a_run_over_fewer_seats_left_out(cache):
    build(small.tiny_decoder(), calibration="auto", structures=("decoder_ffn",))
    plan = build(small.tiny_decoder(), calibration="auto")
    assert plan.calibration.origin == "measured" and {"o[0]", "ffn[0]"} <= set(plan.bound)
    assert any("nothing of" in text for text in plan.calibration.diagnostics)
    assert build(small.tiny_decoder(), calibration="auto").calibration.origin == "cache"


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FRTSPEC_CACHE_DIR", str(tmp_path / "file"))
    plan = build(small.tiny_decoder(), calibration="auto")
    assert plan.bound and any("was not kept" in text for text in plan.calibration.diagnostics)


# ---------------------------------------------------------------- captures


def test_contents_come_back_as_they_passed(tmp_path):
    """A content point of a live host: kept by a run, saved, and there again in the next."""
    model = small.tiny_decoder()
    plain = small.seat_named(model, "o[0]")
    structure = dataclasses.replace(
        plain.structure, points={**plain.structure.points, "held": "content"}
    )
    seat = dataclasses.replace(
        plain, structure=structure, points={**plain.points, "held": plain.points["x"]}
    )
    requests = {"o[0]": {"x": (rt.Stat("amax", "tensor"),)}}

    def seen(batches):
        thunks = [lambda ids=ids: model(ids) for ids in batches]
        return observe.observe(model, [seat], requests, thunks)

    first = seen(BATCHES)
    made = calibration_state.draft(first, model, small.BINDING, small.FP8_STATIC, [seat]).seal()
    loaded = rt.Calibration.load(made.save(tmp_path / "held.safetensors"))
    again = calibration_state.overlaid(seen(BATCHES[3:]), loaded, 99.9)
    passed, wanted = again.values("o[0]", "held"), first.values("o[0]", "held")
    assert [p.contents is not None for p in passed] == [True, True, False, False]
    for mine, theirs in zip(passed, wanted, strict=True):
        assert (mine.dtypes, mine.shapes, mine.size) == (theirs.dtypes, theirs.shapes, theirs.size)
        for one, other in zip(mine.contents or (), theirs.contents or (), strict=True):
            assert torch.equal(one, other)
    assert again.amax("o[0]", "x") == first.amax("o[0]", "x") != seen(BATCHES[3:]).amax("o[0]", "x")
