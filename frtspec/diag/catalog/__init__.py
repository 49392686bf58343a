"""The code catalog: one module per phase, each with ``CODES: tuple[Code, ...]``."""
