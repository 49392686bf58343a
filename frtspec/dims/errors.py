"""What goes wrong with dims, in one wording."""

from __future__ import annotations


class DimError(ValueError):
    """A size that does not fit, or an expression that has no whole value.

    ``tensor`` and ``axis`` say where (None for an expression on its own),
    ``expected`` is the declared expression, ``found`` the size met, ``because``
    what fixed the symbols of ``expected`` (``"D = 576 from the config"``).
    """

    def __init__(
        self,
        problem: str,
        *,
        tensor: str | None = None,
        axis: int | None = None,
        expected: str | None = None,
        found: int | None = None,
        because: tuple[str, ...] = (),
    ) -> None:
        self.problem = problem
        self.tensor = tensor
        self.axis = axis
        self.expected = expected
        self.found = found
        self.because = because
        where = "" if tensor is None else tensor if axis is None else f"{tensor}, axis {axis}"
        text = f"{where}: {problem}" if where else problem
        super().__init__(f"{text} ({'; '.join(because)})" if because else text)
