"""Projections of a conditioning that takes a few values only, looked up instead of computed."""
