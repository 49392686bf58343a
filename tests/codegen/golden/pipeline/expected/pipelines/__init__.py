"""Pipelines: stages, loops, and rules over a run."""
