"""What flows through a pipeline: who fills each value before it is read, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from frtspec.ir import decl as ir
from frtspec.sema.context import Context, listing
from frtspec.syntax import ast

UNFILLED, WRITERS, STATIC, LOOP, ACCESS = "FRT0710", "FRT0711", "FRT0712", "FRT0713", "FRT0718"
UNKNOWN_STAGE = "FRT0902"


def check_flow(context: Context, pipeline: ir.Pipeline, states: Sequence[ast.StateDecl]) -> None:
    """Every rule about readers, writers and loops that needs no run.

    states  the declarations, which say which writers and readers were written down
    """
    for loop in pipeline.loops:
        _check_loop(context, pipeline, loop)
    for window in pipeline.windows:
        _check_filled(context, pipeline, "window", window.name, window.caller)
        if window.readback:
            _check_written(context, pipeline, window)
        _used(context, "window", window.name, window)
    for buffer in pipeline.buffers:
        _check_filled(context, pipeline, "buffer", buffer.name, False)
        _used(context, "buffer", buffer.name, buffer)
        if buffer.mode == "static":
            _check_static(context, pipeline, buffer)
    for node, state in zip(states, pipeline.states, strict=True):
        _check_state(context, pipeline, node, state)


def _used(context: Context, kind: str, name: str, value: ir.Window | ir.Buffer) -> None:
    context.unused(kind, name, value.span, "no stage touches it: use it or leave it out")


# ---------------------------------------------------------------- loops


def _check_loop(context: Context, pipeline: ir.Pipeline, loop: ir.StageLoop) -> None:
    """Stages of a loop stand next to each other, in the order of a step, in no other loop."""
    order = [stage.name for stage in pipeline.stages]
    places = [order.index(name) for name in loop.runs]
    if places != list(range(places[0], places[0] + len(places))) if places else False:
        context.error(
            LOOP,
            f"the stages of loop `{loop.name}` are not declared next to each other in this order",
            loop.span,
            help=f"they are declared as {listing(order)}; the order of stages is the order of runs",
        )
    for other in pipeline.loops:
        if other is loop:
            return
        shared = [name for name in loop.runs if name in other.runs]
        if shared:
            message = f"stage `{shared[0]}` runs in the loops `{other.name}` and `{loop.name}`"
            context.error(LOOP, message, loop.span, help="a stage runs in one loop")


# ---------------------------------------------------------------- windows and buffers


def _check_filled(
    context: Context, pipeline: ir.Pipeline, kind: str, name: str, caller: bool
) -> None:
    """A value is filled before the first stage that reads it; reported once a value."""
    if caller or name in context.dropped:
        return
    written: list[ir.Stage] = []
    for stage, use in pipeline.accesses(name):
        if use.reads and not _has_source(pipeline, stage, use, written):
            _report_unfilled(context, pipeline, kind, name, stage, use, written)
            return
        if use.writes:
            written.append(stage)


def _has_source(
    pipeline: ir.Pipeline, stage: ir.Stage, use: ir.StageAccess, written: Iterable[ir.Stage]
) -> bool:
    """Whether something surely filled the value by then.

    A stage that may be left out fills it only for readers that can do without, or that are
    left out with it. A state region starts with some state, so any writer will do.
    """
    any_writer = any(u.writes for _, u in pipeline.accesses(use.name))
    region = any(state.name == use.name for state in pipeline.states)
    if use.optional or region and not _is_flow(pipeline, use.name):
        return any_writer
    sure = [s for s in written if not s.optional and not _optional_write(s, use.name)]
    return bool(sure) or bool(list(written)) and stage.optional


def _is_flow(pipeline: ir.Pipeline, name: str) -> bool:
    return any(value.name == name for value in pipeline.flows)


def _optional_write(stage: ir.Stage, name: str) -> bool:
    use = stage.access(name)
    return use is not None and use.optional


def _report_unfilled(
    context: Context,
    pipeline: ir.Pipeline,
    kind: str,
    name: str,
    stage: ir.Stage,
    use: ir.StageAccess,
    written: Sequence[ir.Stage],
) -> None:
    writers = [s.name for s, u in pipeline.accesses(name) if u.writes]
    if written:
        what = f"only what may be left out writes {kind} `{name}` before stage `{stage.name}`"
    elif writers == [stage.name]:
        what = f"stage `{stage.name}` reads {kind} `{name}`, which nothing fills before it"
    elif writers:
        what = f"stage `{stage.name}` reads {kind} `{name}` before {listing(writers)} writes it"
    else:
        what = f"stage `{stage.name}` reads {kind} `{name}`, and nobody writes it"
    help = "let a stage before it write it"
    if kind == "window":
        help += f", or say that the caller does: `window {name} : … from caller`"
    context.error(UNFILLED, what, use.span, help=help)


def _check_written(context: Context, pipeline: ir.Pipeline, window: ir.Window) -> None:
    uses = list(pipeline.accesses(window.name))
    if uses and not any(use.writes for _, use in uses) and window.name not in context.dropped:
        message = f"window `{window.name}` is read back, and no stage writes it"
        context.error(UNFILLED, message, window.span, help="let a stage write it")


def _check_static(context: Context, pipeline: ir.Pipeline, buffer: ir.Buffer) -> None:
    for stage, use in pipeline.accesses(buffer.name):
        loop = pipeline.loop_of(stage.name)
        if loop is not None and use.writes:
            context.error(
                STATIC,
                f"stage `{stage.name}` writes the static buffer `{buffer.name}` inside loop "
                f"`{loop.name}`",
                use.span,
                notes=((buffer.span, "declared static here"),),
                help="write it before the loop, or make it `: mutable`",
            )


# ---------------------------------------------------------------- state regions


def _check_state(
    context: Context, pipeline: ir.Pipeline, node: ast.StateDecl, state: ir.StateRegion
) -> None:
    _check_sides(context, pipeline, node.writers, state, "writes", "writers")
    _check_sides(context, pipeline, node.readers, state, "reads", "readers")
    for buffer in pipeline.buffers:
        if buffer.name == state.name and buffer.mode == "static":
            message = f"state `{state.name}` is a static buffer, which no loop may write"
            context.error(ACCESS, message, state.span, help="make the buffer `: mutable`")
    uses = list(pipeline.accesses(state.name))
    if not _is_flow(pipeline, state.name) and uses and not any(u.writes for _, u in uses):
        stage, use = uses[0]
        message = f"stage `{stage.name}` reads state `{state.name}`, and nobody writes it"
        context.error(UNFILLED, message, use.span, help="let a stage write it")


def _check_sides(
    context: Context,
    pipeline: ir.Pipeline,
    given: Sequence[ast.Name],
    state: ir.StateRegion,
    does: str,
    word: str,
) -> None:
    """Writers (readers) that a region names are those whose stages declare it, and all."""
    stages = {stage.name: stage for stage in pipeline.stages}

    def touches(stage: ir.Stage) -> bool:
        use = stage.access(state.name)
        return use is not None and (use.writes if word == "writers" else use.reads)

    for name in given:
        if name.id not in stages:
            context.unknown("stage", name, stages, code=UNKNOWN_STAGE)
        elif not touches(stages[name.id]):
            verb = "write" if word == "writers" else "read"
            context.error(
                WRITERS,
                f"stage `{name.id}` is among the {word} of state `{state.name}` and does not "
                f"declare it",
                name.span,
                notes=((stages[name.id].span, "the stage"),),
                help=f"add `{verb} {state.name}` to the stage, or leave the stage out here",
            )
    missing = [stage for stage in stages.values() if touches(stage)]
    if missing and not given and not context.dropped:
        names = ", ".join(stage.name for stage in missing)
        context.error(
            WRITERS,
            f"state `{state.name}` does not name its {word}",
            state.span,
            help=f"add: {word} ({names})",
        )
    for stage in missing if given else ():
        if stage.name not in {n.id for n in given}:
            use = stage.access(state.name)
            assert use is not None
            context.error(
                WRITERS,
                f"stage `{stage.name}` {does} state `{state.name}` and is not among its {word}",
                use.span,
                notes=((state.span, "the state"),),
                help=f"add it to the {word} of the state, or leave the access out",
            )
