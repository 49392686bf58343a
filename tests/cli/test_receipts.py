"""``frtspec receipts``: nothing is believed that does not verify."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frtspec.cli import receipts as command
from frtspec.cli.common import FINDINGS, OK, USAGE
from frtspec.cli.main import main
from frtspec.runtime import receipt as receipts
from tests.runtime.calibration.support import attach, build, small

Json = dict[str, Any]


@pytest.fixture(scope="module")
def attached() -> Json:
    plan = attach(small.tiny_decoder(), structures=("decoder_ffn", "linear_proj"))
    plan.detach()
    found: Json = plan.receipt
    return found


@pytest.fixture(scope="module")
def built() -> Json:
    plan = build(small.tiny_decoder(), scheme="none", rungs=None)
    plan.detach()
    found: Json = plan.receipt
    return found


@pytest.fixture
def folder(attached: Json, built: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "receipts"
    there.mkdir()
    receipts.save(attached, there / "a.json")
    receipts.save(built, there / "b.json")
    return there


def resealed(receipt: Json, change: Callable[[Json], None]) -> Json:
    """A receipt of other content that verifies."""
    body = copy.deepcopy({k: v for k, v in receipt.items() if k not in ("schema", "digests")})
    change(body)
    return receipts.seal(body)


def of_the_catalog(body: Json) -> None:
    """The receipt as if its specs were the catalog's of today."""
    now = command._digests()
    assert not isinstance(now, int)
    for row in body["specs"]:
        row["name"] = "llama" if row["kind"] == "binding" else row["name"]
        row["contract_digest"] = now[row["kind"], row["name"], row["version"]]
    body["plan"]["host"]["binding"] = "llama"


def as_json(capsys: pytest.CaptureFixture[str]) -> Json:
    found: Json = json.loads(capsys.readouterr().out)
    return found


DAMAGE: dict[str, Callable[[Path], object]] = {
    "edited": lambda path: path.write_text(path.read_text().replace('"judged": 2', '"judged": 3')),
    "cut": lambda path: path.write_text(path.read_text()[:-20]),
    "other": lambda path: path.write_text('["no receipt"]'),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "deep": lambda path: path.write_text("[" * 100_000),
}


def test_whole_receipts_verify(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receipts", "verify", "receipts"]) == OK
    out = capsys.readouterr().out
    assert "receipts/a.json: whole" in out and out.endswith("2 receipts, 0 damaged\n")


@pytest.mark.parametrize(
    "damage, action",
    [
        *((damage, "verify") for damage in DAMAGE.values()),
        *((DAMAGE["edited"], action) for action in ("show", "compare", "matrix")),
    ],
)
def test_every_action_verifies_first(
    folder: Path,
    damage: Callable[[Path], object],
    action: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(folder / "a.json")
    assert main(["receipts", action, "receipts", "--format", "json"]) == FINDINGS
    found = as_json(capsys)
    rows = found["damaged"] if action == "matrix" else found["receipts"]
    row = next(row for row in rows if row["file"] == "receipts/a.json")
    assert not row["ok"] and row["problems"] and row["digest"] is None
    assert row.get("receipt") is None and not found.get("differences")
    assert all(cell["file"] != "receipts/a.json" for cell in found.get("cells", ()))
    assert main(["receipts", action, "receipts"]) == FINDINGS
    assert row["problems"][0] in capsys.readouterr().out


def test_show_tells_every_seat(
    folder: Path, attached: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["receipts", "show", "receipts/a.json"]) == OK
    out = capsys.readouterr().out
    assert attached["digests"]["receipt"] in out and "TinyDecoder (torch " in out
    for name, seat in attached["verdict"]["seats"].items():
        (line,) = [line for line in out.splitlines() if line.startswith(f"    {name}  ")]
        assert seat["state"] in line and seat["reason"] in line and seat["code"] in line
    assert "fp8_static on emulate" in out and "4 samples, measured; judged on 2 (held out)" in out
    assert main(["receipts", "show", "receipts/a.json", "--format", "json"]) == OK
    assert as_json(capsys)["receipts"][0]["receipt"] == attached


def test_a_receipt_equals_itself_made_at_another_time(
    folder: Path, attached: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    later = resealed(attached, lambda body: body.update(created="2030-01-01T00:00:00Z"))
    receipts.save(later, folder / "b.json")
    assert main(["receipts", "compare", "receipts"]) == OK
    assert capsys.readouterr().out == "a.json and b.json: same\n"


def changed(body: Json) -> None:
    body["environment"]["packages"]["torch"] = "9.9"
    body["verdict"]["seats"]["ffn[0]"].update(state="kept", code="latency", reason="no gain")
    body["verdict"]["counts"]["bound"] -= 1
    body["verdict"]["counts"]["kept"] += 1
    body["plan"]["seats"][0]["rung"] = "torch"
    boundary = body["metrics"]["seats"]["ffn[1]"]
    next(gate for gate in boundary if gate["gate"] == "boundary")["metrics"]["cosine"] = 0.5
    body["specs"][0]["contract_digest"] = "1" * 64
    body["plan"]["options"]["percentile"] = 50.0
    body["plan"]["host"]["installed"] = "8.8"


def test_what_differs_is_named_and_nothing_else(
    folder: Path, attached: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    receipts.save(resealed(attached, changed), folder / "b.json")
    assert main(["receipts", "compare", "receipts/a.json", "receipts/b.json"]) == FINDINGS
    text = capsys.readouterr().out
    assert "environment\n  packages.torch: " in text and " -> 9.9\n" in text
    assert main(["receipts", "compare", "receipts", "--format", "json"]) == FINDINGS
    found = {(row["group"], row["at"]): row["right"] for row in as_json(capsys)["differences"]}
    seat = attached["plan"]["seats"][0]["name"]
    assert found == {
        ("specs", "binding tiny.contract"): "1" * 64,
        ("host", "installed"): "8.8",
        ("options", "percentile"): 50.0,
        ("environment", "packages.torch"): "9.9",
        ("seats", f"{seat}.rung"): "torch",
        ("states", "seats.ffn[0].state"): "kept",
        ("states", "seats.ffn[0].code"): "latency",
        ("states", "seats.ffn[0].reason"): "no gain",
        ("metrics", "seats.ffn[1].boundary.metrics.cosine"): 0.5,
    }


def test_the_matrix_marks_cells_whose_contracts_moved(
    folder: Path, attached: Json, built: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    receipts.save(resealed(attached, of_the_catalog), folder / "a.json")

    def moved(body: Json) -> None:
        of_the_catalog(body)
        body["created"] = "2030-01-01T00:00:00Z"
        row = next(r for r in body["specs"] if r["name"] == "fp8_static for decoder_ffn.mlp v1")
        row["contract_digest"] = "1" * 64

    receipts.save(resealed(attached, moved), folder / "c.json")
    assert main(["receipts", "matrix", "receipts", "--format", "json"]) == OK
    cells = as_json(capsys)["cells"]
    rows = {(cell["structure"], Path(cell["file"]).stem): cell for cell in cells}
    assert {cell["host"] for cell in cells} == {f"TinyDecoder (torch {_torch(attached)})"}
    ffn = [cell for cell in cells if cell["structure"] == "decoder_ffn.mlp v1"]
    assert Path(ffn[0]["file"]).stem == "c", "newest first"
    assert rows["decoder_ffn.mlp v1", "a"]["orphaned"] == []
    assert rows["decoder_ffn.mlp v1", "a"]["states"] == {"bound": 2}
    (why,) = rows["decoder_ffn.mlp v1", "c"]["orphaned"]
    assert why.startswith(
        "impl fp8_static for decoder_ffn.mlp v1 version 1: its contract was 111111"
    )
    assert rows["linear_proj v1", "c"]["orphaned"] == [], "another impl moved, not this one's"
    assert any(
        "binding tiny is not among the specs" in w for w in rows["linear_proj v1", "b"]["orphaned"]
    )
    assert not rows["linear_proj v1", "b"]["judged"] and rows["linear_proj v1", "a"]["judged"]

    (folder / "d.json").write_text("{}")
    assert main(["receipts", "matrix", "receipts"]) == FINDINGS
    text = capsys.readouterr().out
    assert "2/2 bound, fp8_static on " in text and ", orphaned  (c.json)" in text
    assert "damaged\n  d.json\n" in text


def _torch(receipt: Json) -> str:
    return str(receipt["plan"]["host"]["installed"])


@pytest.mark.parametrize(
    "argv",
    [
        ["receipts"],
        ["receipts", "verify"],
        ["receipts", "verfy", "receipts"],
        ["receipts", "verify", "nowhere"],
        ["receipts", "matrix", "empty"],
        ["receipts", "compare", "receipts/a.json"],
        ["receipts", "compare", "receipts", "receipts"],
    ],
    ids=" ".join,
)
def test_usage(folder: Path, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / "empty").mkdir()
    assert main(argv) == USAGE
    assert "Traceback" not in capsys.readouterr().err
