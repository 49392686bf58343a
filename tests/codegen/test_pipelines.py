"""Generated pipelines and their uses: on a live host, and beside flash-rt's own manifests."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from codegen_kit import catalog, importable, program_of, written
from torch import nn

from frtspec.codegen import generate
from frtspec.runtime import trace
from frtspec.runtime.errors import Refusal

SPEC = (Path(__file__).parent / "golden/pipeline/spec.frt").read_text("utf-8")
PEER = {
    name: use.pipeline[0]
    for name, binding in catalog().bindings.items()
    for use in binding.pipelines
    if name.startswith("flashrt_")
}


@pytest.fixture(scope="module")
def caption(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("made")
    written(program_of(SPEC), folder, package="made_pipelines")
    with importable(folder, "made_pipelines"):
        yield importlib.import_module("made_pipelines.captioner.caption")


class Tower(nn.Module):
    """A host with the modules that the binding names."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Linear(4, 4)
        self.encoder = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)


def values() -> dict[str, torch.Tensor]:
    return {
        "image": torch.ones(1, 4),
        "tokens": torch.zeros(1, 4),
        "features": torch.zeros(1, 4),
        "cache": torch.zeros(1, 4),
        "text": torch.zeros(1, 4),
    }


def test_stages_and_steps_of_a_host(caption: ModuleType) -> None:
    model = Tower()
    assert [use.path for use in caption.stages(model)] == ["encoder", "head"]
    assert caption.steps(model) == {"words": 16}
    assert caption.USE.cadences == {"request": ("encode", "decode")}
    assert trace.modules(caption.USE, model) == {"encode": model.encoder, "decode": model.head}
    manifest = caption.USE.manifest(model)
    assert manifest["stages"] == ["encode", "decode"]
    rows = manifest["coverage"]["segments"]
    assert rows[0]["structures"] == ["vision_mlp"] and rows[0]["seats"] == ["mlp"]
    assert [row["hot"] for row in rows] == [True, True, True]


def test_a_trace_takes_stages_and_steps_from_the_binding(caption: ModuleType) -> None:
    model, held = Tower(), values()
    found = caption.record(model, held, steps={"words": 2})
    modules = trace.modules(caption.USE, model)
    with torch.no_grad(), found.watching(modules, form="graph"):
        model.encoder(held["image"])
        for _ in range(2):
            model.head(held["features"])
    record = found.record()
    assert record.steps == {"words": 2} and record.captures["encode"] == "eager"
    assert trace.check(record, record).ok


def test_a_host_that_lacks_a_stage_is_refused(caption: ModuleType) -> None:
    model = Tower()
    del model.head
    with pytest.raises(Refusal) as caught:
        caption.record(model, {})
    assert caught.value.code == "host.path" and "head" in caught.value.what


def test_a_host_that_lacks_the_place_of_a_value_is_refused(caption: ModuleType) -> None:
    model = Tower()
    del model.embeddings
    with pytest.raises(Refusal) as caught:
        caption.record(model, {})
    assert caught.value.code == "host.path" and "embeddings" in caught.value.what


def test_an_imported_use_is_refused_and_its_seats_are_not(tmp_path: Path) -> None:
    head = "  pipeline caption version 1 {\n    stage"
    assert SPEC.count(head) == 1
    said = SPEC.replace(head, head.replace("{\n", '{\n    status imported "never run"\n'))
    written(program_of(said), tmp_path, package="made_imported")
    with importable(tmp_path, "made_imported"):
        use = importlib.import_module("made_imported.captioner.caption")
        host = importlib.import_module("made_imported.captioner")
        with pytest.raises(Refusal) as caught:
            use.record(Tower(), {})
        assert caught.value.code == "trace.imported" and "never run" in caught.value.what
        assert host.HOST.imported is None


def test_a_binding_of_nothing_but_an_imported_pipeline_is_refused(tmp_path: Path) -> None:
    seats = SPEC[
        SPEC.index("  each i in 0..L {") : SPEC.index("  pipeline caption version 1 {\n    stage")
    ]
    said = SPEC.replace(seats, "").replace(
        "  dims { D = config.hidden_size, F = config.intermediate_size, L = config.num_hidden_layers }\n\n",
        "",
    )
    head = "  pipeline caption version 1 {\n    stage"
    said = said.replace(head, head.replace("{\n", '{\n    status imported "never run"\n'))
    said = said.replace("{ seats mlp }", '{ seam "the tower" covers vision_mlp }')
    written(program_of(said), tmp_path, package="made_bare")
    with importable(tmp_path, "made_bare"):
        host = importlib.import_module("made_bare.captioner")
        with pytest.raises(Refusal) as caught:
            host.attach(Tower(), lambda: None)
        assert caught.value.code == "spec.imported" and "never run" in caught.value.what


def test_a_pipeline_of_the_installed_package_is_imported_from_there(tmp_path: Path) -> None:
    """What the installed package holds with the same contract is not generated again."""
    from frtspec.codegen.homes import External
    from frtspec.codegen.manifest import read

    program = program_of(SPEC)
    written(program, tmp_path, package="made_base")
    manifest = read(tmp_path / "made_base" / "MANIFEST.json")
    assert manifest is not None
    external = External("made_base", manifest)
    report = generate(program, tmp_path, package="made_mine", external=external)
    assert report.ok
    assert "made_mine/pipelines/caption_v1.py" not in report.written
    text = (tmp_path / "made_mine/captioner/caption.py").read_text()
    assert "from made_base.pipelines.caption_v1 import PIPELINE" in text
    assert "require_digest(PIPELINE" in text


@pytest.mark.parametrize("name", PEER)
def test_coverage_is_that_of_flash_rt(name: str) -> None:
    """The generated manifest of each imported binding beside flash-rt's own."""
    peer = pytest.importorskip("flash_rt.catalog.binding")
    module = importlib.import_module(f"flashrt_gen.{name}.{PEER[name]}")
    theirs = peer.load_binding(name.removeprefix("flashrt_")).manifest()
    ours = module.USE.manifest()
    assert sorted(ours["stages"]) == sorted(theirs["stages"])
    assert ours["pipeline"]["version"] == theirs["structure"]["version"]
    assert ours["pipeline"]["family"] == theirs["structure"]["family"]
    assert ours.get("coverage") == theirs.get("coverage")
    with pytest.raises(Refusal) as caught:
        trace.modules(module.USE, Tower())
    assert caught.value.code == "trace.imported"


def test_every_pipeline_binding_of_flash_rt_is_there() -> None:
    assert len(PEER) == 14
