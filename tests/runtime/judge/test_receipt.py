"""Receipts: whole, sealed field by field, written atomically."""

from __future__ import annotations

import copy
import json

import pytest

from frtspec import runtime as rt
from frtspec.runtime import receipt
from tests.runtime import hosts_small as small


def attach(**options):
    model = small.tiny_decoder()
    batches = small.token_batches(3)
    options = {"scheme": "fp8_static", "rungs": ("emulate",), "observations": batches, **options}
    plan = rt.attach(small.BINDING, model, model, **options)
    plan.detach()
    return plan


@pytest.fixture(scope="module")
def sealed():
    """A receipt with bound, kept and refused seats."""
    floors = {"cosine": 0.99995}
    return attach(structures=("decoder_ffn", "linear_proj", "norm_fused"), floors=floors).receipt


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from leaves(item, (*path, position))
    else:
        yield path, value


def edited(document, path, value):
    changed = copy.deepcopy(document)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return changed


def other(value):
    """A value of the same type, but another one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}0"
        case None:
            return 0
        case _:
            return [1] if isinstance(value, list) else {"x": 1}


def test_a_receipt_verifies_as_object_and_as_file(sealed, tmp_path):
    assert receipt.verify(sealed)
    path = receipt.save(sealed, tmp_path / "out" / "receipt.json")
    assert receipt.verify(path) and receipt.verify(str(path))
    assert json.loads(path.read_text()) == sealed


def test_editing_any_field_breaks_its_digest(sealed, monkeypatch):
    """By the digests alone: the schema is not asked, so that it hides nothing."""
    monkeypatch.setattr(receipt, "_misfits", lambda _: [])
    monkeypatch.setattr(receipt, "_contradictions", lambda _: [])
    found = list(leaves(sealed))
    assert len(found) > 400
    survivors = [
        path for path, value in found if receipt.verify(edited(sealed, path, other(value)))
    ]
    assert survivors == []


def test_what_was_judged_and_how_is_in_it(sealed):
    """Fields that a sweep over a receipt without them would miss."""
    paths = {tuple(str(p) for p in path if not isinstance(p, int)) for path, _ in leaves(sealed)}
    for path in (
        ("plan", "options", "form"),
        ("plan", "options", "max_trials"),
        ("metrics", "noise", "variations", "what"),
        ("metrics", "noise", "variations", "metrics", "max_abs"),
        ("metrics", "units", "kind"),
        ("metrics", "units", "latency", "self_spread"),
        ("metrics", "units", "latency", "against"),
    ):
        assert path in paths, path


def test_flipping_a_verdict_breaks_it(sealed):
    changed = copy.deepcopy(sealed)
    name, seat = next(
        (n, s) for n, s in changed["verdict"]["seats"].items() if s["state"] == "refused"
    )
    seat["state"] = "bound"
    problems = receipt.verify(changed).problems
    assert any(p.startswith("verdict: the digest") for p in problems), name
    assert any("counts does not add up" in p for p in problems)


@pytest.mark.parametrize("path", [(), ("plan",), ("plan", "seats", 0), ("metrics",), ("digests",)])
def test_adding_or_dropping_a_field_breaks_it(sealed, path):
    for change in ("add", "drop"):
        changed = copy.deepcopy(sealed)
        place = changed
        for key in path:
            place = place[key]
        if change == "add":
            place["extra"] = 1
        else:
            place.pop(next(iter(place)))
        assert not receipt.verify(changed), change


def test_swapping_two_seats_breaks_it(sealed):
    changed = copy.deepcopy(sealed)
    seats = changed["plan"]["seats"]
    seats[0], seats[1] = seats[1], seats[0]
    assert not receipt.verify(changed)


def test_an_unreadable_receipt_is_a_problem_and_not_an_exception(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    for source in (broken, tmp_path / "absent.json"):
        assert not receipt.verify(source) and "can't be read" in receipt.verify(source).problems[0]
    for value in ({}, [], None, {"schema": receipt.SCHEMA}):
        assert not receipt.verify(value)


def test_it_cites_every_spec_that_it_rests_on(sealed):
    cited = {(spec["kind"], spec["name"]) for spec in sealed["specs"]}
    assert {("binding", "tiny"), ("scheme", "fp8_static"), ("structure", "decoder_ffn")} <= cited
    assert ("impl", "fp8_static for decoder_ffn.mlp v1") in cited
    assert all(len(spec["contract_digest"]) == 64 for spec in sealed["specs"])


def test_it_holds_trail_gates_weights_and_precision_of_a_seat(sealed):
    seat = next(s for s in sealed["plan"]["seats"] if s["name"] == "ffn[0]")
    assert [row["what"] for row in seat["trail"]][-1] == "emulate" and len(seat["trail"]) == 3
    assert all(row["reason"] for row in seat["trail"])
    assert [gate["gate"] for gate in sealed["metrics"]["seats"]["ffn[0]"]] == [
        "reference",
        "saturation",
        "parity",
        "boundary",
    ]
    bound = [n for n, row in sealed["verdict"]["seats"].items() if row["state"] == "bound"]
    precision = {s["name"]: s["precision"]["points"] for s in sealed["plan"]["seats"]}
    formats = {p["dtype"] for n in bound for p in precision[n].values()}
    assert bound and formats <= {"fp8_e4m3"}


def test_weights_of_bound_seats_are_in_the_receipt():
    plan = attach(structures=("decoder_ffn",))
    seat = next(s for s in plan.receipt["plan"]["seats"] if s["name"] == "ffn[0]")
    assert set(seat["weights"]) == {
        f"layers.0.mlp.{name}.weight" for name in ("gate_proj", "up_proj", "down_proj")
    }
    other_model = rt.attach(
        small.BINDING,
        (model := small.tiny_decoder(seed=7)),
        model,
        scheme="fp8_static",
        rungs=("emulate",),
        observations=small.token_batches(3),
        structures=("decoder_ffn",),
    )
    theirs = next(s for s in other_model.receipt["plan"]["seats"] if s["name"] == "ffn[0]")
    assert all(theirs["weights"][path] != mark for path, mark in seat["weights"].items())


def test_the_same_weights_have_the_same_marks_in_any_process_and_order():
    marks = [
        {s["name"]: s["weights"] for s in attach(structures=names).receipt["plan"]["seats"]}
        for names in (("decoder_ffn",), ("linear_proj", "decoder_ffn"))
    ]
    assert marks[0]["ffn[0]"] == marks[1]["ffn[0]"] != {}


def test_it_names_no_path_user_or_machine(sealed):
    text = json.dumps(sealed)
    assert "/root" not in text and "/work" not in text and "/home" not in text


def test_the_same_run_gives_the_same_digests_but_for_the_time():
    first, second = attach().receipt, attach().receipt
    for section in receipt.SECTIONS:
        if section != "costs":  # it holds seconds
            assert first["digests"][section] == second["digests"][section], section
    assert first["costs"]["flops"] == second["costs"]["flops"]


def test_nan_cannot_be_sealed(sealed):
    document = {key: sealed[key] for key in ("created", *receipt.SECTIONS)}
    document["metrics"] = {**document["metrics"], "output_kind": float("nan")}
    with pytest.raises(ValueError, match="JSON"):
        receipt.seal(document)


def test_saving_is_atomic(sealed, tmp_path, monkeypatch):
    path = tmp_path / "receipt.json"
    receipt.save(sealed, path)
    before = path.read_bytes()

    def half(document, file, **_):
        file.write('{"schema": ')
        raise OSError("disk full")

    monkeypatch.setattr(receipt.json, "dump", half)
    with pytest.raises(OSError, match="disk full"):
        receipt.save(sealed, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["receipt.json"]


def test_a_folder_gets_a_name_by_digest(sealed, tmp_path):
    path = receipt.save(sealed, tmp_path)
    assert path.name == f"receipt_{sealed['digests']['receipt'][:12]}.json"


def test_the_schema_is_a_valid_schema_and_closed_everywhere():
    from jsonschema import Draft202012Validator

    schema = receipt.schema()
    Draft202012Validator.check_schema(schema)
    for name, part in {"receipt": schema, **schema["$defs"]}.items():
        assert part.get("additionalProperties") is False, name
