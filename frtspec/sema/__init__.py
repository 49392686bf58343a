"""From syntax trees to the typed program, with everything that is wrong on the way."""

from frtspec.sema.analyse import Analysis, analyse

__all__ = ["Analysis", "analyse"]
