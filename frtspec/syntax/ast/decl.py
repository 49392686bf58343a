"""Pipelines, and the declarations of a file."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.syntax.ast.expr import Else, ErrorNode, Expr, Name, Number
from frtspec.syntax.ast.impl import AtDecl, OtherwiseKeepDecl
from frtspec.syntax.ast.parts import Docstring, StatusDecl, StructRef
from frtspec.syntax.ast.pipeline import PipelineMember, UseMember


@dataclass(frozen=True, slots=True)
class StructureDecl:
    name: Name
    version: Number
    doc: Docstring | None
    members: tuple[object, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipelineDecl:
    """A pipeline structure (stages instead of tensors)."""

    name: Name
    version: Number
    doc: Docstring | None
    members: tuple[PipelineMember, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipelineUse:
    """``pipeline NAME version N {…}`` inside a binding."""

    name: Name
    version: Number
    doc: Docstring | None
    members: tuple[UseMember, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ImplDecl:
    name: Name
    target: StructRef
    version: Number
    doc: Docstring | None
    members: tuple[object, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SchemeDecl:
    name: Name
    doc: Docstring | None
    members: tuple[AtDecl | OtherwiseKeepDecl | StatusDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AutoDecl:
    """``auto { capability >= 8.9 => fp8_static, else => none }``."""

    arms: tuple[tuple[Expr | Else, Name], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class BindingDecl:
    name: Name
    doc: Docstring | None
    members: tuple[object, ...]
    span: Span


Decl = StructureDecl | PipelineDecl | ImplDecl | SchemeDecl | AutoDecl | BindingDecl | ErrorNode


@dataclass(frozen=True, slots=True)
class File:
    """``frt 1`` and what follows. ``edition`` is None when the first line was wrong."""

    edition: int | None
    decls: tuple[Decl, ...]
    span: Span
