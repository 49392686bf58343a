"""The hosts of a binding: classes of a package, or native modules."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.ir import decl as ir
from frtspec.sema.common import named_once
from frtspec.sema.context import Context
from frtspec.syntax import ast

HOST, TWICE = "FRT0601", "FRT0728"


def hosts(
    context: Context, name: ast.Name, nodes: Sequence[ast.HostDecl], imported: bool
) -> tuple[ir.HostRef, ...]:
    """The hosts that binding ``name`` is for; no two share a class or a module.

    imported  whether the binding is not verified: versions are then as the source has them,
              and the class of model may be left open
    """
    if not nodes and "host" not in context.dropped:
        context.error(
            "FRT0209",
            f"binding `{name.id}` names no host",
            name.span,
            help='add: host transformers ">=5.0,<6" class LlamaForCausalLM',
        )
    found = tuple(_host(context, node, imported) for node in nodes)
    taken: dict[tuple[str, str], ast.HostDecl] = {}
    for node, host in zip(nodes, found, strict=True):
        keys = [("class", c) for c in host.classes]
        keys += [] if host.module is None else [(host.package, host.module)]
        for key in keys:
            before = taken.setdefault(key, node)
            if before is not node:
                what = f"class `{key[1]}`" if key[0] == "class" else f'module "{key[1]}"'
                context.error(
                    TWICE,
                    f"{what} belongs to two hosts of this binding",
                    node.span,
                    notes=((before.span, "first here"),),
                    help="a model must tell by its class which host it is: leave one out",
                )
    return found


def unverified(context: Context, statuses: Sequence[ast.StatusDecl]) -> bool:
    """Whether a declaration is, or may be, imported: its status could not be read, or is a
    misspelt one."""
    return "imported" in context.dropped or any(s.name.id != "draft" for s in statuses)


def _host(context: Context, node: ast.HostDecl, imported: bool) -> ir.HostRef:
    module = None if node.native_module is None else node.native_module.value
    open_ended = imported or "class" in context.dropped
    if module is None and not node.classes and not open_ended:
        context.error(
            HOST,
            f"host `{node.package.id}` names no class of model",
            node.span,
            help="add `class LlamaForCausalLM`; several stand in parentheses",
        )
    if module is not None:
        _check_module(context, node, module)
    named_once(context, "class", node.classes)
    if node.versions is not None and not imported and not _is_specifier(node.versions.value):
        context.error(
            HOST,
            f'"{node.versions.value}" is no range of versions',
            node.versions.span,
            help='write it as pip does: ">=5.0,<6"',
        )
    versions = None if node.versions is None else node.versions.value
    classes = tuple(dict.fromkeys(c.id for c in node.classes))
    return ir.HostRef(node.package.id, versions, classes, module)


def _check_module(context: Context, node: ast.HostDecl, module: str) -> None:
    assert node.native_module is not None
    if node.classes:
        context.error(
            HOST,
            f"host `{node.package.id}` is a native module and names classes",
            node.native_module.span,
            help="a model is attached to by its class; a native module stands for itself",
        )
    if not all(part.isidentifier() for part in module.split(".")):
        context.error(
            HOST,
            f'"{module}" is no path of a Python module',
            node.native_module.span,
            help='write it as it is imported: "package.module.Class"',
        )


def _is_specifier(text: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return bool(text.strip())
