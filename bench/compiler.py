"""What the compiler costs: start-up of the commands, parse throughput, growth.

    python bench/compiler.py [--rounds N] [--small] [--json FILE]

Prints medians, spread, versions, and what lies inside each timed region. ``--small``
runs every part once on little input: it shows that the script works, not how fast
anything is.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from _measure import (
    ROOT,
    Arm,
    Sample,
    environment,
    measure,
    run_fresh,
    table,
    write_json,
)

from frtspec.diag.source import SourceFile
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

PACKAGES = ("lark", "jinja2", "black")
# Seconds, median, for a command in a fresh process on two cores.
CHECK, GEN_NOTHING, GEN_COLD = 2.0, 1.0, 25.0
ONE = "specs/structures/decoder_ffn/v1.frt"


def main() -> None:
    options = arguments()
    found = environment(PACKAGES)
    for name, value in found.items():
        print(f"{name:>10}  {value}")
    small = options.small
    often = {"rounds": options.rounds, "warmup": 0 if small else 1}
    samples = [
        *commands("specs/schemes/none.frt" if small else "specs", **often),
        *throughput(size=20_000 if small else 500_000, **often),
        *growth(sizes=(1, 2) if small else (1, 10, 100, 1000), **often),
    ]
    if options.json:
        write_json(options.json, found, samples)
        print(f"\nevery single time: {options.json}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, help="timed runs of each arm (5; with --small 1)")
    parser.add_argument("--small", action="store_true", help="little input, to try the script")
    parser.add_argument("--json", type=Path, help="write every single time to this file")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.small else 5)
    return options


def commands(what: str, **often: int) -> list[Sample]:
    """``check`` of ``what``, ``rounds`` times after ``warmup``, and ``gen`` of it into an empty folder, with nothing to do
    and with nothing to do but no memory of it: each in a fresh process."""
    print("\n== commands in a fresh process ==\n")
    with tempfile.TemporaryDirectory() as folder:
        gen = ("-m", "frtspec", "gen", what, "--out", f"{folder}/out")
        run_fresh(*gen)  # writes everything, so that the timed runs find nothing to do
        stamps = Path(folder, "cache")

        def cold() -> None:
            with tempfile.TemporaryDirectory() as empty:
                run_fresh("-m", "frtspec", "gen", what, "--out", empty)

        def forgetful() -> None:
            # The removal is part of the time: a few files.
            shutil.rmtree(stamps, ignore_errors=True)
            run_fresh(*gen, env={"XDG_CACHE_HOME": str(stamps)})

        arms = [
            Arm(
                f"check {what}",
                "a fresh interpreter, imports, grammar, reading and checking every spec",
                lambda: run_fresh("-m", "frtspec", "check", what),
                CHECK,
            ),
            Arm(
                f"check {ONE}",
                "the same with what this one file needs read and checked",
                lambda: run_fresh("-m", "frtspec", "check", ONE),
            ),
            Arm(
                f"gen {what}, nothing to do",
                "a fresh interpreter, a digest of specs, compiler and generated files, its stamp",
                lambda: run_fresh(*gen),
                GEN_NOTHING,
            ),
            Arm(
                f"gen {what}, no stamp",
                "what check does, then comparing every generated file with the manifest",
                forgetful,
            ),
            Arm(
                f"gen {what}, cold",
                "what check does, then rendering, formatting and writing every file",
                cold,
                GEN_COLD,
            ),
            Arm(
                "python -c pass",
                "a fresh interpreter alone: the part of both that is not ours",
                lambda: run_fresh("-c", "pass"),
            ),
        ]
        samples = measure(arms, **often)
    print(table(samples))
    return samples


def throughput(*, size: int, **often: int) -> list[Sample]:
    """The parser on one source of ``size`` bytes or a little more, grammar already built."""
    print("\n== parse throughput ==\n")
    text = repeated_catalog(size)
    source = SourceFile.from_text("throughput.frt", text)
    megabytes = len(text.encode()) / 1e6

    def run() -> None:
        result = parse(source)
        assert not result.diagnostics, result.diagnostics[0]

    name = f"parse {megabytes:.2f} MB"
    samples = measure(
        [Arm(name, "text to syntax tree with spans and comments, in process", run)], **often
    )
    print(table(samples))
    wall, cpu = megabytes / samples[0].median, megabytes / samples[0].cpu_median
    print(f"\nthroughput  {wall:.2f} MB/s at the median, {cpu:.2f} MB a second of CPU time")
    return samples


def growth(*, sizes: Sequence[int], **often: int) -> list[Sample]:
    """Checking 1, 10, 100, 1000 bindings beside the catalog: CPU time per binding."""
    print("\n== growth with the number of bindings ==\n")
    catalog = [SourceFile.from_text(str(path), path.read_text()) for path in catalog_files()]
    arms = [binding_arm(0, catalog)] + [binding_arm(size, catalog) for size in sizes]
    samples = measure(arms, **often)
    print(table(samples))
    base = samples[0].cpu_median
    print("\n  bindings   CPU time per binding, the catalog's taken off")
    extra = {size: one.cpu_median - base for size, one in zip(sizes, samples[1:], strict=True)}
    for size, seconds in extra.items():
        print(f"  {size:>8}   {seconds / size * 1e3:8.2f} ms")
    print(f"\nexponent    {exponent(extra)} (1 is linear)")
    return samples


def binding_arm(count: int, catalog: Sequence[SourceFile]) -> Arm:
    sources = [*catalog, *synthetic_bindings(count)]

    def run() -> None:
        analysis = analyse([(source, parse(source).file) for source in sources])
        errors = [found for found in analysis.diagnostics if found.severity == "error"]
        assert not errors, errors[0]

    what = f"parse and check of the catalog and {count} more bindings, in process"
    return Arm(f"{count} bindings", what, run)


def catalog_files() -> list[Path]:
    return sorted((ROOT / "specs").rglob("*.frt"))


def synthetic_bindings(count: int) -> list[SourceFile]:
    """``count`` files, each the qwen3 binding under a name of its own."""
    text = (ROOT / "specs/bindings/qwen3.frt").read_text()
    return [
        SourceFile.from_text(
            f"synthetic/b{number}.frt", text.replace("binding qwen3 ", f"binding b{number} ")
        )
        for number in range(count)
    ]


def repeated_catalog(size: int) -> str:
    """The catalog's declarations over and over, under one edition line, to ``size`` bytes."""
    body = "\n".join(
        re.sub(r"\A.*?^frt 1$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for path in catalog_files()
    )
    return "frt 1\n" + body * math.ceil(size / len(body))


def exponent(extra: dict[int, float]) -> str:
    """Slope of log(seconds) over log(bindings), least squares, sizes of 10 and more."""
    points = [(math.log(n), math.log(s)) for n, s in extra.items() if n >= 10 and s > 0]
    if len(points) < 2:
        return "not fitted: it takes two sizes of 10 or more"
    slope, _ = statistics.linear_regression(*zip(*points, strict=True))
    return f"{slope:.2f}"


if __name__ == "__main__":
    main()
