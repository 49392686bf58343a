"""`frtspec diff` and the lock as commands: formats, acceptances, receipts, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from frtspec.cli.main import main
from frtspec.diff.compare import Comparison
from frtspec.diff.consequences import consequences
from frtspec.diff.rules import RULES
from tests.diff.triplets import GOLDEN, both_ways

LOOSER = GOLDEN / "gate.loosened"
SARIF = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "results": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"type": "object", "required": ["text"]},
                            },
                        },
                    }
                },
            },
        },
    },
}
"""The parts of SARIF 2.1.0 that are written."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def diff(*argv: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["diff", *argv])
    return code, capsys.readouterr().out


def bumped(here: Path) -> None:
    """Version 1 on both sides, and a version 2 with a weaker gate on the newer one."""
    text = (LOOSER / "a/spec.frt").read_text()
    for side in ("old", "new"):
        (here / side).mkdir()
        (here / side / "v1.frt").write_text(text)
    newer = text.replace("version 1", "version 2").replace("cosine >= 0.995", "cosine >= 0.99")
    (here / "new/v2.frt").write_text(newer)


def accept(here: Path, found: dict[str, Any], **other: str) -> None:
    row = {k: found[k] for k in ("rule", "subject", "from", "to")}
    row |= {"reason": "agreed", "by": "a.reviewer"} | other
    lines = [f'{name} = "{value}"' for name, value in row.items() if name != "expires"]
    lines.append(f"expires = {other.get('expires', '2099-01-01')}")
    (here / "new/accept.toml").write_text("[[accept]]\n" + "\n".join(lines) + "\n")


def test_an_acceptance_holds_for_one_pair_of_digests(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bumped(here)
    code, text = diff("old", "new", "--format", "json", capsys=capsys)
    report = json.loads(text)
    (loose,) = [e for e in report["events"] if e["verdict"] == "error"]
    assert (code, loose["rule"], report["breaking"]) == (1, "gate.loosened", True)
    accept(here, loose)
    code, text = diff("old", "new", "--format", "json", capsys=capsys)
    report = json.loads(text)
    (loose,) = [e for e in report["events"] if e["rule"] == "gate.loosened"]
    assert code == 0 and "a.reviewer" in loose["accepted"] and report["problems"] == []
    newer = here / "new/v2.frt"
    newer.write_text(newer.read_text().replace("0.99 ", "0.98 "))
    code, text = diff("old", "new", "--format", "json", capsys=capsys)
    assert code == 1 and [p["code"] for p in json.loads(text)["problems"]] == ["FRT0922"]


@pytest.mark.parametrize(
    "other, code",
    [({"expires": "2020-01-01"}, "FRT0923"), ({"rule": "version.missing"}, "FRT0924")],
)
def test_acceptances_that_hold_nothing(
    other: dict[str, str], code: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bumped(here)
    _, text = diff("old", "new", "--format", "json", capsys=capsys)
    (loose,) = [e for e in json.loads(text)["events"] if e["verdict"] == "error"]
    accept(here, loose, **other)
    done, text = diff("old", "new", "--format", "json", capsys=capsys)
    assert done == 1 and code in [p["code"] for p in json.loads(text)["problems"]]


@pytest.mark.parametrize("format", ["text", "github", "sarif", "markdown"])
def test_formats_show_both_places_and_the_rule(
    format: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bumped(here)
    code, text = diff("old", "new", "--format", format, capsys=capsys)
    assert code == 1 and "gate.loosened" in text and "`cosine >= 0.995` became" in text
    if format in ("text", "github"):
        assert "new/v2.frt" in text and "old/v1.frt" in text
    if format == "sarif":
        log = json.loads(text)
        jsonschema.validate(log, SARIF)
        (run,) = log["runs"]
        for result in run["results"]:
            rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
            assert rule["id"] == result["ruleId"]
            assert rule["shortDescription"]["text"] == RULES[rule["id"]].what
        (loose,) = [r for r in run["results"] if r["ruleId"] == "gate.loosened"]
        assert loose["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
            "old/v1.frt"
        )


def test_a_retired_name_is_told_with_its_note(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "specs").mkdir()
    lock = (GOLDEN / "spec.retired.noted/b/spec.lock").read_text()
    (here / "specs/spec.lock").write_text(lock)
    (here / "specs/plain.frt").write_text(
        "frt 1\n\nscheme plain {\n  # t version 1 in a comment\n"
        '  at t version 1 keep "small"\n  otherwise keep "no form"\n}\n'
    )
    assert main(["lock"]) == 1
    text = capsys.readouterr().out
    assert "specs/plain.frt:5:6: error[FRT0925]" in text
    assert "its migration note: use s version 1" in text
    assert (here / "specs/spec.lock").read_text() == lock


# ---------------------------------------------------------------- receipts


def receipt(found: Comparison, cosine: float) -> dict[str, Any]:
    """What the consequences read of one: a seat of the older structure, and its figures."""
    (pair,) = [p for p in found.pairs if p.subject.kind == "structure"]
    row = {"kind": "structure", "name": "s", "version": 1, "contract_digest": pair.digests[0]}
    seat = {"name": "ffn[0]", "target": "s.mlp v1"}
    gates = [
        {"gate": "boundary", "metrics": {"cosine": cosine, "max_abs": 0.1}},
        {"gate": "seam", "metrics": {"cosine": 0.997}},
    ]
    body = {"specs": [row], "plan": {"seats": [seat]}, "metrics": {"seats": {"ffn[0]": gates}}}
    return {"file": "one.json", "receipt": body, "problems": ()}


@pytest.mark.parametrize("cosine, passed", [(0.9999, True), (0.9992, False)])
def test_a_receipt_is_judged_anew_by_its_own_figures(cosine: float, passed: bool) -> None:
    found, _ = both_ways(GOLDEN / "gate.tightened")
    (fate,) = consequences(found, [receipt(found, cosine)]).receipts
    assert (fate.fate, fate.passed) == ("judged", passed)
    assert passed or "ffn[0]: cosine 0.9992 is not >= 0.9995" in fate.reasons


def test_a_metric_without_figures_has_to_run_again() -> None:
    found, _ = both_ways(GOLDEN / "gate.metric.added")
    (fate,) = consequences(found, [receipt(found, 0.9999)]).receipts
    assert (fate.fate, fate.passed) == ("judged", False)
    assert "no figure of rel_l2" in fate.reasons[0]


def test_a_receipt_of_another_contract_is_orphaned_and_one_beside_it_holds() -> None:
    found, _ = both_ways(GOLDEN / "reference.changed")
    (fate,) = consequences(found, [receipt(found, 1.0)]).receipts
    assert (fate.fate, fate.reasons) == ("orphaned", ("the contract of structure s v1 moved",))
    other = receipt(found, 1.0)
    other["receipt"]["specs"][0]["name"] = "t"
    assert consequences(found, [other]).receipts[0].fate == "holds"


def test_who_pins_what_moved_is_named() -> None:
    found, _ = both_ways(GOLDEN / "binding.path")
    (who,) = consequences(found).requalify
    assert str(who) == "binding mine"
    found, _ = both_ways(GOLDEN / "scheme.route")
    assert {str(s) for s in consequences(found).requalify} == {"auto"}
