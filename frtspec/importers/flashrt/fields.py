"""Reading a mapping by its fields: what is missing, of a wrong kind, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from frtspec.diag.diagnostic import Diagnostic, Severity
from frtspec.diag.suggest import did_you_mean
from frtspec.importers.flashrt.yamldoc import Map, Scalar, Seq, Value, kind

WRONG_KIND, UNKNOWN_KEY = "FRT0883", "FRT0884"

Report = Callable[[Diagnostic], None]


class Fields:
    """One mapping, field by field. ``what``: how messages call the mapping.

    Every getter marks its field as known; ``done`` reports those that nobody asked for.
    """

    def __init__(self, held: Map, what: str, report: Report) -> None:
        self.held = held
        self.what = what
        self.report = report
        self.known: list[str] = []

    # ------------------------------------------------------------ getters

    def text(self, name: str, *, needed: bool = False) -> Scalar | None:
        """A text that is not blank."""
        value = self._get(name, needed)
        if value is None:
            return None
        if isinstance(value, Scalar) and isinstance(value.value, str) and value.value.strip():
            return value
        self.wrong(name, "a text", value)
        return None

    def scalar(self, name: str) -> Scalar | None:
        """A text or a whole number."""
        value = self._get(name, False)
        if value is None:
            return None
        if isinstance(value, Scalar) and isinstance(value.value, str | int):
            return value
        self.wrong(name, "a text or a whole number", value)
        return None

    def truth(self, name: str) -> bool:
        """False where the field is absent."""
        value = self._get(name, False)
        if value is None:
            return False
        if isinstance(value, Scalar) and isinstance(value.value, bool):
            return value.value
        self.wrong(name, "true or false", value)
        return False

    def whole(self, name: str) -> int | None:
        value = self._get(name, True)
        if isinstance(value, Scalar) and _whole(value):
            assert isinstance(value.value, int)
            return value.value
        if value is not None:
            self.wrong(name, "a whole number", value)
        return None

    def mapping(self, name: str, *, needed: bool = False) -> Map | None:
        value = self._get(name, needed)
        if value is None or isinstance(value, Map):
            return value
        self.wrong(name, "a mapping", value)
        return None

    def texts(self, name: str, *, needed: bool = False) -> tuple[Scalar, ...]:
        """A list of texts."""
        value = self._get(name, needed)
        if value is None:
            return ()
        if not isinstance(value, Seq):
            self.wrong(name, "a list of texts", value)
            return ()
        return tuple(self._only_texts(name, value.items))

    def mappings(self, name: str) -> tuple[Map, ...]:
        """A list of mappings."""
        value = self._get(name, False)
        if value is None:
            return ()
        if not isinstance(value, Seq):
            self.wrong(name, "a list of mappings", value)
            return ()
        for item in value.items:
            if not isinstance(item, Map):
                self.wrong(f"{name}[]", "a mapping", item)
        return tuple(item for item in value.items if isinstance(item, Map))

    def skip(self, *names: str) -> None:
        """Fields that are known and not read here."""
        self.known.extend(names)

    def done(self, severity: Severity = "warning") -> None:
        """Report the fields that nobody knows."""
        for key in self.held.names():
            if key not in self.known:
                at = self.held.key(key)
                assert at is not None
                self.report(
                    Diagnostic(
                        UNKNOWN_KEY,
                        f"{self.what} has the unknown key `{key}`; it is not carried over",
                        at.span,
                        severity,
                        help=did_you_mean(key, self.known) or f"known: {', '.join(self.known)}",
                    )
                )

    # ------------------------------------------------------------ inside

    def _get(self, name: str, needed: bool) -> Value | None:
        self.known.append(name)
        value = self.held.get(name)
        if value is None and needed:
            self.report(Diagnostic(WRONG_KIND, f"{self.what} has no `{name}`", self.held.span))
        return value

    def wrong(self, name: str, wanted: str, value: Value) -> None:
        key = self.held.key(name)
        span = value.span if value.span.end > value.span.start or key is None else key.span
        message = f"`{name}` of {self.what} must be {wanted}, not {kind(value)}"
        self.report(Diagnostic(WRONG_KIND, message, span))

    def _only_texts(self, name: str, items: Collection[Value]) -> Iterator[Scalar]:
        for item in items:
            if isinstance(item, Scalar) and isinstance(item.value, str) and item.value.strip():
                yield item
            else:
                self.wrong(f"{name}[]", "a text", item)


def texts_of(held: Map, what: str, report: Report) -> tuple[tuple[Scalar, Scalar], ...]:
    """A mapping of names to texts, as pairs."""
    fields = Fields(held, what, report)
    pairs = ((key, fields.text(key.text)) for key, _ in held)
    return tuple((key, value) for key, value in pairs if value is not None)


def _whole(value: Scalar) -> bool:
    return isinstance(value.value, int) and not isinstance(value.value, bool)
