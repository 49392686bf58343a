"""A flow as one SVG picture: readable alone, in print, in light and in dark."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from frtspec.docgen.flow import Edge, Flow, Node
from frtspec.docgen.layers import Placed, place

_CHAR = 7.23
"""Width of a character of the monospace text at 12 px; boxes are wide enough for fonts
that need a little more."""
_LINE, _PAD, _BETWEEN, _MARGIN = 16, 9, 34, 16
_WRAP = 46
_BRACKET = 26
"""Width on the left that each bracket takes."""

_STYLE = """
  text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; }
  .name { font-weight: 700; }
  .when { font-style: italic; fill: #6e5494; }
  .bg { fill: #ffffff; }
  rect { stroke-width: 1.2; }
  .input rect { fill: #ddf4ff; stroke: #0969da; }
  .slot rect { fill: #f6f8fa; stroke: #818b98; stroke-dasharray: 4 2; }
  .value rect { fill: #ffffff; stroke: #818b98; }
  .point rect { fill: #fff1d6; stroke: #bc4c00; stroke-width: 2; }
  .output rect { fill: #dafbe1; stroke: #1a7f37; }
  path { fill: none; stroke: #59636e; stroke-width: 1.2; }
  .maybe { stroke-dasharray: 5 4; }
  .span path { stroke: #8250df; stroke-width: 2; }
  .span text { fill: #8250df; font-weight: 700; }
  marker path { fill: #59636e; stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .when { fill: #c8b0f0; }
    .bg { fill: #0d1117; }
    .input rect { fill: #0c2d4a; stroke: #4493f8; }
    .slot rect { fill: #151b23; stroke: #9198a1; }
    .value rect { fill: #0d1117; stroke: #9198a1; }
    .point rect { fill: #3d2409; stroke: #f0883e; }
    .output rect { fill: #0f2d1a; stroke: #3fb950; }
    path { stroke: #9198a1; }
    .span path { stroke: #ab7df8; }
    .span text { fill: #ab7df8; }
    marker path { fill: #9198a1; }
  }
"""


@dataclass(frozen=True)
class _Box:
    node: Node
    lines: tuple[tuple[str, str], ...]  # (class, text)

    @property
    def width(self) -> float:
        return max(len(text) for _, text in self.lines) * _CHAR + 2 * _PAD

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + 2 * _PAD - 4


def draw(flow: Flow, title: str, description: str) -> str:
    """The picture. ``title`` and ``description`` are what a screen reader says."""
    boxes = {node.key: _box(node) for node in flow.nodes}
    ends = [(edge.source, edge.target) for edge in flow.edges]
    placed = place(
        {key: box.width for key, box in boxes.items()},
        ends,
        late=lambda key: boxes[key].node.kind in ("slot", "input"),
    )
    left = _MARGIN + _BRACKET * len(flow.spans)
    tops, heights = _rows(boxes.values(), placed)
    bottom = tops[-1] + heights[-1]
    width, height = left + placed.width + _MARGIN, bottom + _MARGIN
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
            f"aria-label={quoteattr(title)}>"
        ),
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(description)}</desc>",
        f"<style>{_STYLE}</style>",
        (
            '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
        ),
        f'<rect class="bg" width="{width:.0f}" height="{height:.0f}"/>',
        *_edges(flow.edges, boxes, placed, tops, heights, left),
        *_boxes(boxes, placed, tops, left),
        *_spans(flow, boxes, placed, tops),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _box(node: Node) -> _Box:
    mark = "● " if node.kind == "point" else ""
    lines = [("name", f"{mark}{node.title}")]
    for line in node.lines:
        wrapped = textwrap.wrap(line, _WRAP, subsequent_indent="  ", break_long_words=False)
        lines += [("code", text) for text in wrapped]
    if node.when is not None:
        word = "" if node.when.startswith("where ") else "when "
        lines += [("when", text) for text in textwrap.wrap(f"{word}{node.when}", _WRAP)]
    return _Box(node, tuple(lines))


def _rows(boxes: Iterable[_Box], placed: Placed) -> tuple[list[float], list[float]]:
    """Where each row begins, and how high it is."""
    heights = [0.0] * (max(placed.row.values(), default=0) + 1)
    for box in boxes:
        row = placed.row[box.node.key]
        heights[row] = max(heights[row], box.height)
    tops, at = [], float(_MARGIN)
    for height in heights:
        tops.append(at)
        at += height + _BETWEEN
    return tops, heights


def _edges(
    edges: Iterable[Edge],
    boxes: dict[int, _Box],
    placed: Placed,
    tops: list[float],
    heights: list[float],
    left: float,
) -> Iterator[str]:
    for edge in edges:
        route = placed.routes[edge.source, edge.target]
        source, target = boxes[edge.source], boxes[edge.target]
        points = [(left + x, tops[row]) for x, row in route]
        start = (points[0][0], points[0][1] + source.height)
        floor = points[0][1] + heights[route[0][1]]  # straight past higher boxes of its row
        d = [f"M{start[0]:.1f} {start[1]:.1f} V{floor:.1f}"]
        before = (start[0], floor)
        bend = _BETWEEN * 0.6
        for (x, y), (_, row) in zip(points[1:], route[1:], strict=True):
            curve = (before[0], before[1] + bend, x, y - bend, x, y)
            d.append("C" + " ".join(f"{at:.1f}" for at in curve))
            if row != route[-1][1]:  # straight past the boxes of the row
                d.append(f"V{y + heights[row]:.1f}")
            before = (x, y + heights[row])
        kind = ' class="maybe"' if edge.maybe or target.node.when else ""
        yield f'<path{kind} d="{" ".join(d)}" marker-end="url(#end)"/>'


def _boxes(boxes: dict[int, _Box], placed: Placed, tops: list[float], left: float) -> Iterator[str]:
    for key, box in boxes.items():
        x, y = left + placed.x[key] - box.width / 2, tops[placed.row[key]]
        yield f'<g class="{box.node.kind}">'
        yield (
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
            f'rx="{10 if box.node.kind in ("input", "output") else 3}"/>'
        )
        for number, (kind, text) in enumerate(box.lines, start=1):
            yield (
                f'<text class="{kind}" x="{x + _PAD:.1f}" y="{y + number * _LINE + 3:.1f}" '
                f'xml:space="preserve">{escape(text)}</text>'
            )
        yield "</g>"


def _spans(flow: Flow, boxes: dict[int, _Box], placed: Placed, tops: list[float]) -> Iterator[str]:
    """A bracket along the rows of each seam or loop."""
    for number, span in enumerate(flow.spans):
        inside = [box for box in boxes.values() if span in box.node.spans]
        if not inside:
            continue
        top = min(tops[placed.row[box.node.key]] for box in inside)
        low = max(tops[placed.row[box.node.key]] + box.height for box in inside)
        x = _MARGIN + _BRACKET * number + 16
        yield '<g class="span">'
        yield f'<path d="M{x + 7} {top:.1f} H{x} V{low:.1f} H{x + 7}"/>'
        middle = (top + low) / 2
        yield (
            f'<text x="{x - 5}" y="{middle:.1f}" text-anchor="middle" '
            f'transform="rotate(-90 {x - 5} {middle:.1f})">{escape(span)}</text>'
        )
        yield "</g>"
