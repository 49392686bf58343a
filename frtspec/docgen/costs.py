"""What a structure costs, as formulas and at the sizes of real models."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from frtspec.devices import DEVICES, Device
from frtspec.dims import DimError
from frtspec.ir.decl import Seam, Structure
from frtspec.sema.combos import Combo, combos
from frtspec.sema.cost import Cost, CostAt, cost

ROWS = (1, 64, 2048)
DEVICE = DEVICES["h200"]


@dataclass(frozen=True)
class Sizes:
    """Dims of one model. ``rows``: the dim that stands for the length of the work.
    ``version``: of the structure; None for every one."""

    structure: str
    model: str
    dims: Mapping[str, int]
    rows: str = "M"
    version: int | None = None

    def of(self, structure: Structure) -> bool:
        """Whether these are sizes of this structure."""
        return self.structure == structure.name and self.version in (None, structure.version)


def read_sizes(path: Path) -> tuple[Sizes, ...]:
    """The sizes of a ``sizes.toml``; none where there is no such file.

    Raises ``ValueError`` naming the file and what is wrong in it.
    """
    try:
        body = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    rows = body.get("sizes", [])
    try:
        return tuple(
            Sizes(
                str(row["structure"]),
                str(row["model"]),
                {str(dim): int(size) for dim, size in row["dims"].items()},
                str(row.get("rows", "M")),
                None if "version" not in row else int(row["version"]),
            )
            for row in rows
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{path}: a [[sizes]] table needs structure, model and dims: {error!r}"
        ) from error


def cost_section(structure: Structure, sizes: Sequence[Sizes]) -> list[str]:
    """The Markdown of the cost: of the whole, and of each seam, in the first combination."""
    combo = next(iter(combos(structure)))
    cuts: list[Seam | None] = [None, *structure.seams]
    costs = {seam: cost(structure, combo, seam=seam) for seam in cuts}
    lines = [
        f"| {seam.name if seam else 'whole'} | `{c.flops}` | `{c.weights}` | `{c.least}` | "
        f"`{c.unfused}` |"
        for seam, c in costs.items()
    ]
    made = [
        "## Cost",
        (
            f"With {_first_words(combo)}, a host of 16 bits. Operations count two for a multiply and "
            "add; bytes are those of a perfect fusion (*least*) and of one kernel an op (*unfused*)."
        ),
        "\n".join(
            [
                "| part | operations | bytes of weights | bytes, least | bytes, unfused |",
                "| --- | --- | --- | --- | --- |",
                *lines,
            ]
        ),
    ]
    seam = structure.seams[0] if structure.seams else None
    for given in sizes:
        if given.of(structure):
            made += _at(structure, costs[seam], seam, given, DEVICE)
    return made


def _first_words(combo: Combo) -> str:
    return f"`{combo.text()}`" if combo.text() else "its one combination"


def _at(
    structure: Structure, found: Cost, seam: Seam | None, sizes: Sizes, device: Device
) -> list[str]:
    """One table: the roofline of a device at the sizes of a model."""
    rows = []
    for count in ROWS:
        try:
            at = found.at({**sizes.dims, sizes.rows: count})
        except DimError as error:
            raise ValueError(f"sizes of {sizes.model} for {structure.name}: {error}") from error
        rows.append(_line(count, at, device))
    what = f"`{seam.name}`" if seam else "the whole"
    shown = ", ".join(f"{dim} = {size}" for dim, size in sizes.dims.items())
    return [
        f"### {sizes.model}",
        (
            f"{what[:1].upper()}{what[1:]} at {shown} on an {device.name} ({device.bandwidth / 1e12:.2f} TB/s, "
            f"{device.peak['bf16'] / 1e12:.0f} TFLOP/s in bf16: {device.measured}). The roofline is a bound "
            "from below, not a measurement."
        ),
        "\n".join(
            [
                (
                    f"| {sizes.rows} | GFLOP | MB, least | MB, unfused | FLOP a byte | roofline, bf16 | "
                    "bound by |"
                ),
                "| ---: | ---: | ---: | ---: | ---: | ---: | --- |",
                *rows,
            ]
        ),
    ]


def _line(count: int, at: CostAt, device: Device) -> str:
    seconds = at.seconds(device.peak["bf16"], device.bandwidth)
    bound = "compute" if at.flops / device.peak["bf16"] > at.least / device.bandwidth else "memory"
    cells = (
        str(count),
        short(at.flops / 1e9),
        short(at.least / 1e6),
        short(at.unfused / 1e6),
        short(at.intensity),
        f"{short(seconds * 1e6)} us",
        bound,
    )
    return f"| {' | '.join(cells)} |"


def short(value: float) -> str:
    """Three digits that count, never with an exponent above."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
