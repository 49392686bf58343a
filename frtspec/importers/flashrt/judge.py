"""What a binding of flash-rt claims, compared with what is known: ranges, hosts, spellings.

Every finding says what was done about it. Whether a region can stand as verified is
decided here, from ``hosts.SETTLED`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt import hosts
from frtspec.importers.flashrt.bindings import Host, Region
from frtspec.importers.flashrt.fields import Report
from frtspec.importers.flashrt.hosts import Settled
from frtspec.importers.flashrt.site import PLACES, Site
from frtspec.importers.flashrt.words import DTYPES, LAYOUTS, OUT_IN_SLOTS

SPELLING, RANGE, OPEN = "FRT0888", "FRT0889", "FRT0891"


@dataclass(frozen=True)
class Verdict:
    """``settled``: what was looked up, for a region that can stand as verified.
    ``reason``: why it can't, in one line."""

    settled: Settled | None
    reason: str | None


def region(found: Region, site: Site, report: Report) -> Verdict:
    """Reports what is wrong or open about a region that has its site."""
    _spellings(found, report)
    _weights_host(found, site, report)
    _constants(found, report)
    settled = _settled(found, site)
    for host in found.hosts:
        allowed = versions(host, report)
        _paths(host, settled, report)
    _never_called(site, found, report)
    if settled is not None:
        _open_variants(found, settled, report)
        _narrowed(found, settled, allowed, report)
        return Verdict(settled, None)
    reason = _reason(found)
    left = [axis for axis in found.structure.axes if axis not in _given(found)]
    notes = [(None, "left open: the model's class, where the norm rounds, and its eps")]
    if left:
        notes.append((None, f"left open: {', '.join(f'`{axis}`' for axis in left)}"))
    report(
        Diagnostic(
            OPEN,
            f"`{found.name.text}` is imported unverified: {reason}",
            found.name.span,
            "note",
            notes=tuple(notes),
        )
    )
    return Verdict(None, reason)


def versions(host: Host, report: Report) -> SpecifierSet | None:
    """A host's versions, where they are a range as pip writes it; reported where they are not."""
    if host.versions is None:
        return None
    try:
        allowed = SpecifierSet(host.versions.text)
    except InvalidSpecifier:
        report(
            Diagnostic(
                RANGE,
                f"`{host.versions.text}` is no range of versions of {host.name.text}",
                host.versions.span,
                "warning",
                help="nothing can be compared with it; kept as the source has it",
            )
        )
        return None
    seen = hosts.SEEN.get(host.name.text)
    if seen is not None and not allowed.contains(seen):
        report(
            Diagnostic(
                RANGE,
                f"`{host.versions.text}` leaves out {host.name.text} {seen}, whose classes have "
                "these paths too",
                host.versions.span,
                "note",
                help="kept as it is; no version inside was looked at",
            )
        )
    return allowed


# ---------------------------------------------------------------- spellings


def _spellings(found: Region, report: Report) -> None:
    dtype = found.dtype
    if dtype is not None and DTYPES.get(dtype.text) != dtype.text:
        ours = DTYPES.get(dtype.text)
        message = (
            f"`{dtype.text}` is spelled `{ours}` in other bindings"
            if ours
            else f"`{dtype.text}` is no dtype of a boundary"
        )
        report(
            Diagnostic(
                SPELLING,
                message,
                dtype.span,
                "warning",
                help="nothing compares it; it is kept for the export alone",
            )
        )
    layout = found.layout
    if layout is not None and LAYOUTS[layout.text] != layout.text:
        report(
            Diagnostic(
                SPELLING,
                f"`{layout.text}` says what other bindings of {found.structure.name} spell "
                f"`{LAYOUTS[layout.text]}`",
                layout.span,
                "warning",
                help=f"read as `{LAYOUTS[layout.text]}`; the spelling is kept for the export",
            )
        )
    elif layout is not None and found.structure.name in OUT_IN_SLOTS:
        report(
            Diagnostic(
                SPELLING,
                f"`{layout.text}` is no difference here: the slots of {found.structure.name} are "
                "[out, in] themselves",
                layout.span,
                "note",
                help="slots are [in, out] here in every structure, so it is one: read as the "
                "host's layout",
            )
        )


def _constants(found: Region, report: Report) -> None:
    """A norm of ones and zeros is the identity, which a variant says."""
    norm = {w.slot.text: w.const for w in found.weights if w.slot.text in ("w_norm", "b_norm")}
    if norm == {"w_norm": "ones", "b_norm": "zeros"} and "norm_affine" in found.structure.axes:
        at = next(w.slot for w in found.weights if w.slot.text == "w_norm")
        report(
            Diagnostic(
                SPELLING,
                "a norm of ones and zeros is what `norm_affine: identity` says, which the "
                "variant leaves out",
                at.span,
                "note",
                help="kept as constants, as the source has it",
            )
        )


# ---------------------------------------------------------------- hosts


def _weights_host(found: Region, site: Site, report: Report) -> None:
    names = [host.name.text for host in found.hosts]
    if found.weights_host.text in names:
        return
    where = f", found at `{site.root}` of it" if site.root else ""
    report(
        Diagnostic(
            PLACES,
            f"the weights are named for `{found.weights_host.text}`, which `hosts` does not have",
            found.weights_host.span,
            "warning",
            notes=tuple((host.name.span, f"`hosts` has {host.name.text}") for host in found.hosts),
            help=f"read as paths in {names[0]}'s model{where}; the key is kept for the export",
        )
    )


def _paths(host: Host, settled: Settled | None, report: Report) -> None:
    if host.module_path is None:
        return
    for fact in hosts.PATHS:
        if fact.package == host.name.text and fact.contains in host.module_path.text:
            report(
                Diagnostic(
                    RANGE,
                    f"this path does not hold everywhere: {fact.says}",
                    host.module_path.span,
                    "warning",
                    help="kept as it is; the binding stays unverified"
                    if settled is None
                    else f"it holds in `{settled.versions}`, which is what the binding is held to",
                )
            )


def _never_called(site: Site, found: Region, report: Report) -> None:
    if site.layer not in hosts.NEVER_CALLED:
        return
    at = next(host.module_path for host in found.hosts if host.module_path is not None)
    report(
        Diagnostic(
            PLACES,
            "the host never calls this module's forward, it runs its children one by one",
            at.span,
            "warning",
            help=f"a seat there would never run: the seat is at `{site.seat}`",
        )
    )


def _settled(found: Region, site: Site) -> Settled | None:
    """What was looked up, if the source speaks of the same places."""
    facts = hosts.SETTLED.get(found.name.text)
    here = facts is not None and found.hosts[0].name.text == facts.package
    same = facts is not None and (site.layer, site.seat, site.root) == (
        facts.layer,
        facts.mlp,
        facts.root,
    )
    filled = {weight.slot.text for weight in found.weights if weight.path is not None}
    whole = all(slot.name.text in filled for slot in found.structure.slots)
    return facts if here and same and whole else None


def _reason(found: Region) -> str:
    if found.name.text in hosts.OPEN:
        return hosts.OPEN[found.name.text]
    for host in found.hosts:
        if host.name.text in hosts.UNSEEN:
            return hosts.UNSEEN[host.name.text]
    return "the classes of this host were not looked at"


def _given(found: Region) -> set[str]:
    return {axis.text for axis, _ in found.variant}


def _open_variants(found: Region, settled: Settled, report: Report) -> None:
    for axis, values in found.structure.axes.items():
        if axis not in _given(found) and axis in settled.variants:
            report(
                Diagnostic(
                    OPEN,
                    f"`{found.name.text}` does not say which {axis}: {' or '.join(values)}",
                    found.name.span,
                    "note",
                    help=f"`{settled.variants[axis]}`, as the host's class has it",
                )
            )


def _narrowed(
    found: Region, settled: Settled, allowed: SpecifierSet | None, report: Report
) -> None:
    """The source's range is held to what was looked at."""
    at = found.hosts[0].versions
    if at is None or allowed is None or at.text == settled.versions:
        return
    report(
        Diagnostic(
            RANGE,
            f"`{at.text}` is wider than what was verified: {settled.narrowed}",
            at.span,
            "warning",
            help=f"narrowed to `{settled.versions}`; the source's own text is kept for the export",
        )
    )
