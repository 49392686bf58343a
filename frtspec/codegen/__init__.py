"""From the checked program to a plain, readable Python package."""

from frtspec.codegen.generate import GenReport, generate, problems
from frtspec.codegen.homes import External

__all__ = ["External", "GenReport", "generate", "problems"]
