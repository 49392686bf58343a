"""Structures: shapes, references, points and seams."""
