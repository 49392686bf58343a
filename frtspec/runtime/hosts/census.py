"""Who holds which module and which parameter of a model.

Looking that up walks the whole model, and a model of a hundred layers has a thousand
weights to look up. ``counted`` does it once for everything inside it, where nothing moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Census:
    """``modules``: id of a module -> every path that holds it. ``parameters``: id of a
    parameter -> (path of its module, the module, its name there)."""

    model: nn.Module
    modules: Mapping[int, tuple[str, ...]]
    parameters: Mapping[int, tuple[tuple[str, nn.Module, str], ...]]

    @classmethod
    def of(cls, model: nn.Module) -> Census:
        """The one that holds here, else a new one."""
        known = _KNOWN.get()
        return known if known is not None and known.model is model else cls.taken(model)

    @classmethod
    def taken(cls, model: nn.Module) -> Census:
        """A new one: walks the model."""
        modules: dict[int, list[str]] = {}
        parameters: dict[int, list[tuple[str, nn.Module, str]]] = {}
        for path, module in model.named_modules():
            for name, child in module._modules.items():
                if child is not None:
                    modules.setdefault(id(child), []).append(f"{path}.{name}".removeprefix("."))
            for name, held in module._parameters.items():
                if held is not None:
                    parameters.setdefault(id(held), []).append((path, module, name))
        return cls(
            model,
            {key: tuple(paths) for key, paths in modules.items()},
            {key: tuple(places) for key, places in parameters.items()},
        )

    def shared(self, path: str) -> tuple[str, tuple[str, ...]] | None:
        """The outermost module on the way to ``path`` that several places hold, by the path
        asked for, and those places; None where one path alone leads there.

        Of a module inside a shared one only the first path is known, hence the way down.
        """
        module, walked = self.model, ""
        for name in path.split("."):
            child = module._modules.get(name)
            if child is None:
                return None
            module, walked = child, f"{walked}.{name}".lstrip(".")
            places = self.modules.get(id(module), ())
            if len(places) > 1:
                return walked, places
        return None


_KNOWN: ContextVar[Census | None] = ContextVar("census", default=None)


@contextmanager
def counted(model: nn.Module) -> Iterator[None]:
    """One census for everything inside, which must neither move nor replace modules."""
    token = _KNOWN.set(Census.taken(model))
    try:
        yield
    finally:
        _KNOWN.reset(token)
