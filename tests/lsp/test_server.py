"""The language server, asked by a real client over its pipes, in a project of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the language server's extra is not installed")

from lsprotocol import types

from frtspec.cli.main import main
from tests.lsp.client import Client, applied, at, client

STRUCTURE = """frt 1

structure small_ffn version 1 {
  \"\"\"Two products with a SiLU between them.\"\"\"
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w_up   [D, F]
  slot w_down [F, D]
  variant activation { silu, relu }
  reference {
    let u = x @ w_up
    point hidden = match activation { silu => silu(u), relu => relu(u) }
    yield y = hidden @ w_down
  }
  seam inner { from u to hidden  gate cosine >= 0.99 }
  gate boundary on real_distribution { cosine >= 0.999 }
}
"""
BINDING = """frt 1

binding mine {
  status draft
  host transformers ">=5.13,<6" class LlamaForCausalLM
  dims { D = config.hidden_size, F = config.intermediate_size, L = config.num_hidden_layers }
  each i in 0..L {
    seat ffn : small_ffn version 1 at model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = silu
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point hidden = input of down_proj
      boundary at model.layers.{i}.mlp { x = input, y = output }
    }
  }
}
"""


class Project:
    """A folder with the two specs, and their URIs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.structure = folder / "specs/structures/small_ffn/v1.frt"
        self.binding = folder / "specs/bindings/mine.frt"
        (folder / "pyproject.toml").write_text('[tool.frtspec]\npackage = "my_kernels"\n')
        for path, text in ((self.structure, STRUCTURE), (self.binding, BINDING)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


Asking = Callable[[Client, Project], Awaitable[None]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs a coroutine with the one client of this module; both files lie open as on disk."""
    project = Project(tmp_path_factory.mktemp("project"))
    loop = asyncio.new_event_loop()
    context = client(project.folder)
    lsp = loop.run_until_complete(context.__aenter__())

    def run(asking: Asking) -> None:
        async def whole() -> None:
            for path in (project.structure, project.binding):
                await lsp.open(path)
            try:
                await asking(lsp, project)
            finally:
                for uri in list(lsp.texts):
                    lsp.close(uri)
                lsp.texts.clear()

        loop.run_until_complete(asyncio.wait_for(whole(), 60))

    yield run
    loop.run_until_complete(context.__aexit__(None, None, None))
    loop.close()


def frtspec(folder: Path, *argv: str) -> str:
    """The output of a command."""
    command = (sys.executable, "-m", "frtspec", *argv)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def labels(found: types.CompletionList) -> list[str]:
    return [item.label for item in found.items]


async def completed(lsp: Client, uri: str, text: str) -> list[str]:
    """What is offered at the ``|`` of a text that the file holds for the moment."""
    place = text.index("|")
    lsp.type(uri, 0, len(lsp.texts[uri]), text.replace("|", ""))
    return labels(await lsp.at(types.TEXT_DOCUMENT_COMPLETION, uri, place))


def test_findings_are_those_of_check(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        assert lsp.published[uri] == []
        wrong = BINDING.replace("slot w_up ", "slot w_upp").replace("point hidden", "point hiden")
        found = await lsp.write(uri, wrong)
        project.binding.write_text(wrong)
        try:
            done = frtspec(project.folder, "check", "--format", "json", "bindings")
        finally:
            project.binding.write_text(BINDING)
        said = json.loads(done)["diagnostics"]
        assert len(said) >= 2
        assert [d.code for d in found] == [d["code"] for d in said]
        assert [d.message.split("\n")[0] for d in found] == [d["message"] for d in said]

    asked(asking)


def test_an_edit_is_checked_in_files_that_depend_on_it(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri, other = project.structure.as_uri(), project.binding.as_uri()
        before = lsp.counts[other]
        assert await lsp.write(uri, STRUCTURE.replace("w_down", "w_out")) == []
        found = await lsp.findings(other, before)
        assert any("w_down" in one.message for one in found)

    asked(asking)


def test_hover_tells_doc_formula_dims_and_cost(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        found = await lsp.at(types.TEXT_DOCUMENT_HOVER, uri, BINDING.index("small_ffn"))
        text = found.contents.value
        assert "Two products" in text and "```math" in text and "`M`, `D`, `F`" in text
        assert "Operations `4*D*F*M" in text
        found = await lsp.at(types.TEXT_DOCUMENT_HOVER, uri, BINDING.index("w_up"))
        assert "[D, F]" in found.contents.value
        place = STRUCTURE.index("silu(u)")
        found = await lsp.at(types.TEXT_DOCUMENT_HOVER, project.structure.as_uri(), place)
        assert "silu(x)" in found.contents.value
        assert await lsp.at(types.TEXT_DOCUMENT_HOVER, uri, 0) is None

    asked(asking)


def test_definition_and_references_cross_files(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        (found,) = await lsp.at(types.TEXT_DOCUMENT_DEFINITION, uri, BINDING.index("w_down"))
        assert found.uri == project.structure.as_uri()
        line = STRUCTURE.split("\n")[found.range.start.line]
        assert line.strip().startswith("slot w_down")
        context = types.ReferenceContext(include_declaration=False)
        place = STRUCTURE.index("hidden =")
        structure = project.structure.as_uri()
        found = await lsp.at(types.TEXT_DOCUMENT_REFERENCES, structure, place, context=context)
        assert [Path(one.uri).name for one in found].count("v1.frt") == 2  # the yield, the seam
        assert [Path(one.uri).name for one in found].count("mine.frt") == 1

    asked(asking)


def test_rename_changes_the_whole_project_and_it_still_checks(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.structure.as_uri()
        place = STRUCTURE.index("hidden =")
        found = await lsp.at(types.TEXT_DOCUMENT_RENAME, uri, place, new_name="act")
        texts = {u: applied(lsp.texts[u], list(edits)) for u, edits in found.changes.items()}
        assert set(texts) == {uri, project.binding.as_uri()}
        assert "hidden" not in texts[uri]
        assert "point act = input of down_proj" in texts[project.binding.as_uri()]
        for other, text in texts.items():
            await lsp.write(other, text)
        assert (
            await lsp.write(project.binding.as_uri(), texts[project.binding.as_uri()] + "\n") == []
        )

    asked(asking)


@pytest.mark.parametrize(
    ("new", "why"),
    [("u", "taken"), ("w_up", "taken"), ("match", "word"), ("2x", "no name"), ("def", "Python")],
)
def test_rename_is_refused_with_its_reason(asked: Any, new: str, why: str) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        place = STRUCTURE.index("hidden =")
        with pytest.raises(Exception, match=why):
            await lsp.at(
                types.TEXT_DOCUMENT_RENAME, project.structure.as_uri(), place, new_name=new
            )

    asked(asking)


def test_completion_of_names_in_a_half_written_seat(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        head = BINDING.split("      slot w_up")[0]
        assert (await completed(lsp, uri, head + "      slot |"))[:2] == ["w_up", "w_down"]
        assert (await completed(lsp, uri, head + "      point h|"))[0] == "hidden"
        assert (await completed(lsp, uri, head + "      variant activation = |"))[:2] == [
            "silu",
            "relu",
        ]
        member = await completed(lsp, uri, head + "      |")
        assert {"slot", "point", "variant", "boundary", "expect", "dims"} <= set(member)
        assert "structure" not in member and "rung" not in member
        assert (await completed(lsp, uri, head + "      slot w_up = up.weight : |"))[:2] == [
            "in_out",
            "out_in",
        ]
        assert "up_proj.weight" in await completed(lsp, uri, head + "      slot w_up = |")
        boundary = head + "      boundary at model.layers.{i}.mlp { |"
        assert {"x", "y", "slot"} <= set(await completed(lsp, uri, boundary))

    asked(asking)


def test_completion_of_declarations_and_host_paths(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        head = BINDING.split("    seat ffn")[0]
        names = await completed(lsp, uri, head + "    seat a : |")
        assert {"small_ffn", "decoder_ffn", "norm_fused"} <= set(names)
        assert await completed(lsp, uri, head + "    seat a : decoder_ffn.|") == ["mlp"]
        assert "1" in await completed(lsp, uri, head + "    seat a : decoder_ffn version |")
        seat = "    seat a : decoder_ffn.mlp version 1 at "
        assert "model.layers.{i}.mlp" in await completed(lsp, uri, head + seat + "|")
        weights = await completed(lsp, uri, head + seat + "b {\n slot w_gate = |")
        assert "gate_proj.weight" in weights  # as the catalog's bindings have it

    asked(asking)


def test_completion_in_impls_schemes_and_references(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.structure.as_uri()
        cut = STRUCTURE.split("    let u")[0]
        found = await completed(lsp, uri, cut + "    let u = |")
        assert {"x", "w_up", "silu", "softmax"} <= set(found)
        found = await completed(lsp, uri, cut + "    let u = x when activation is |")
        assert found[:2] == ["silu", "relu"]
        impl = "frt 1\nimpl a version 1 for decoder_ffn.mlp version 1 {\n"
        assert "x_after_norm" in await completed(lsp, uri, impl + "  scale s = static(|")
        assert {"hub", "torch", "emulate"} <= set(await completed(lsp, uri, impl + "  rung |"))
        route = "frt 1\nscheme a {\n  at decoder_ffn.mlp version 1 "
        assert "x_after_norm" in await completed(lsp, uri, route + "{ |")
        assert "amax" in await completed(lsp, uri, route + "{ x_after_norm: |")
        assert "fp8_static" in await completed(lsp, uri, route + "{ x_after_norm: amax } use |")
        assert await completed(lsp, uri, "frt 1\n# a note |") == []
        assert await completed(lsp, uri, 'frt 1\nscheme a {\n  otherwise keep "no |') == []

    asked(asking)


def test_quick_fixes_mend_what_they_are_for(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        for wrong in (
            BINDING.replace("slot w_up ", "slot w_upp"),
            BINDING.replace("variant activation", "varant activation"),
            BINDING.rstrip()[:-1],
        ):
            found = await lsp.write(uri, wrong)
            assert found
            params = types.CodeActionParams(
                types.TextDocumentIdentifier(uri),
                found[0].range,
                types.CodeActionContext(found),
            )
            actions = await lsp.request(types.TEXT_DOCUMENT_CODE_ACTION, params)
            assert actions, [one.message for one in found]
            mended = applied(wrong, list(actions[0].edit.changes[uri]))
            assert await lsp.write(uri, mended) == []

    asked(asking)


def test_symbols_of_a_file_and_of_the_project(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.structure.as_uri()
        document = types.TextDocumentIdentifier(uri)
        found = await lsp.request(
            types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolParams(document)
        )
        (top,) = found
        assert top.name == "small_ffn"
        names = [child.name for child in top.children]
        assert {"w_up", "activation", "hidden", "inner"} <= set(names)
        half = STRUCTURE.split("  gate boundary")[0] + "  slot \n"
        lsp.type(uri, 0, len(STRUCTURE), half)
        again = await lsp.request(
            types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolParams(document)
        )
        assert [s.name for s in again] == ["small_ffn"]
        wide = await lsp.request(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams("smffn"))
        assert wide[0].name == "small_ffn"

    asked(asking)


def test_names_of_a_half_written_file_keep_their_meaning(asked: Any) -> None:
    """A block is opened in the middle and not closed: what follows is still known."""

    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        half = BINDING.replace("      slot w_down", "      siblings {\n      slot w_down")
        lsp.type(uri, 0, len(BINDING), half)
        place = half.index("point hidden") + 6
        (found,) = await lsp.at(types.TEXT_DOCUMENT_DEFINITION, uri, place)
        assert found.uri == project.structure.as_uri()
        assert await lsp.at(types.TEXT_DOCUMENT_HOVER, uri, half.index("small_ffn"))

    asked(asking)


def test_formatting_is_that_of_fmt(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.structure.as_uri()
        ugly = STRUCTURE.replace("  slot w_up   [D, F]", "     slot w_up [D,F]   # é 😀")
        lsp.type(uri, 0, len(STRUCTURE), ugly)
        params = types.DocumentFormattingParams(
            types.TextDocumentIdentifier(uri), types.FormattingOptions(2, True)
        )
        edits = await lsp.request(types.TEXT_DOCUMENT_FORMATTING, params)
        path = project.folder / "ugly.frt"
        path.write_text(ugly)
        frtspec(project.folder, "fmt", str(path))
        assert applied(ugly, list(edits)) == path.read_text("utf-8")
        path.unlink()
        lsp.type(uri, 0, len(ugly), ugly + "structure {")
        assert not await lsp.request(types.TEXT_DOCUMENT_FORMATTING, params)

    asked(asking)


def test_some_lines_are_laid_out(asked: Any) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.structure.as_uri()
        ugly = STRUCTURE.replace("  slot w_up ", "     slot w_up ").replace("  seam", "      seam")
        lsp.type(uri, 0, len(STRUCTURE), ugly)
        place = at(ugly, ugly.index("slot w_up"))
        params = types.DocumentRangeFormattingParams(
            types.TextDocumentIdentifier(uri),
            types.Range(place, place),
            types.FormattingOptions(2, True),
        )
        edits = await lsp.request(types.TEXT_DOCUMENT_RANGE_FORMATTING, params)
        assert applied(ugly, list(edits)) == STRUCTURE.replace("  seam", "      seam")

    asked(asking)


def test_without_its_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["lsp"]) == 2
    assert "frtspec[lsp]" in capsys.readouterr().err


def test_the_installed_catalog_is_not_renamed(asked: Any, tmp_path: Path) -> None:
    async def asking(lsp: Client, project: Project) -> None:
        uri = project.binding.as_uri()
        text = BINDING.replace("small_ffn", "decoder_ffn.mlp")
        lsp.type(uri, 0, len(BINDING), text)
        with pytest.raises(Exception, match="catalog"):
            await lsp.at(
                types.TEXT_DOCUMENT_RENAME, uri, text.index("decoder_ffn"), new_name="other"
            )

    asked(asking)
