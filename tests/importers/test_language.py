"""What the language got for imports: the `export` block, and bindings that leave things open."""

from __future__ import annotations

import pytest

from frtspec.diag.source import SourceFile
from frtspec.ir.canon import contract_digest
from frtspec.ir.decl import Binding
from frtspec.sema import analyse
from frtspec.syntax.parse import parse
from importers import kit

OPEN = """frt 1

binding open {
  status STATUS
  host somewhere
  dims { D = 64, F = 128, L = 2 }
  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at layers.{i}.mlp {
      dims { D = D, F = F }
      slot w_gate = gate_proj.weight : out_in
    }
  }
  EXPORT
}
"""
IMPORTED = 'imported "it was not looked at"'


def built(status: str = IMPORTED, export: str = "") -> tuple[Binding | None, list[str]]:
    text = OPEN.replace("STATUS", status).replace("EXPORT", export)
    source = SourceFile.from_text("open.frt", text)
    tree = parse(source)
    assert not tree.diagnostics
    analysis = analyse([*kit.regions(), (source, tree.file)])
    found = [f"{d.code}: {d.message}" for d in analysis.diagnostics if d.span.path == "open.frt"]
    return analysis.program.bindings.get("open"), found


def test_an_imported_binding_may_leave_open_what_a_draft_has_to_say() -> None:
    binding, found = built()
    assert binding is not None and not found
    _, found = built("draft")
    said = "\n".join(found)
    for what in (
        "class of model",
        "variant `activation`",
        "slot `w_up`",
        "point `x_after_norm`",
        "boundary",
    ):
        assert what in said


def test_an_imported_binding_is_still_held_to_what_it_says() -> None:
    _, found = built(export="dims { X = 1 }")
    assert found


@pytest.mark.parametrize(
    ("export", "code"),
    [
        ('export flash_tr { layout = "out_in" }', "FRT0207"),
        ('export flash_rt { layuot = "out_in" }', "FRT0207"),
        ('export flash_rt { layout[a] = "out_in" }', "FRT0893"),
        ('export flash_rt { m_profile = "micro decode" }', "FRT0893"),
        ('export flash_rt { layout = " " }', "FRT0893"),
        ('export flash_rt { versions[lerobot_x] = ">=1" }', "FRT0201"),
        ('export flash_rt { layout = "a", layout = "b" }', "FRT0208"),
        ('export flash_rt { layout = "a" }\n  export flash_rt { layout = "a" }', "FRT0208"),
    ],
)
def test_what_an_export_block_cannot_say(export: str, code: str) -> None:
    _, found = built(export=export)
    assert [one.partition(":")[0] for one in found] == [code]


def test_an_export_block_is_no_part_of_the_contract() -> None:
    plain, _ = built()
    spelled, _ = built(
        export='export flash_rt { layout = "out_in_native", m_profile[a] = "micro b" }'
    )
    assert plain is not None and spelled is not None
    assert plain.exports == () and len(spelled.exports) == 1
    assert contract_digest(plain) == contract_digest(spelled)


def test_the_digests_of_the_imports_do_not_depend_on_their_order() -> None:
    """One by one or together, forwards or backwards."""
    texts = kit.imported().files
    parsed = {name: SourceFile.from_text(name, text) for name, text in texts.items()}
    trees = {name: (source, parse(source).file) for name, source in parsed.items()}
    together = analyse([*kit.world().specs, *trees.values()]).program.bindings
    backwards = analyse([*reversed(trees.values()), *kit.world().specs]).program.bindings
    digests = {name: b.origin.contract_digest for name, b in together.items()}
    assert digests == {name: b.origin.contract_digest for name, b in backwards.items()}
    assert len(set(digests.values())) == 27
