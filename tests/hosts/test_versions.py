"""Each binding on the oldest and the newest release of its declared range.

The host package lies in an overlay beside the installed torch, and `frtspec verify` runs
in a process of its own. What a version changes shows here: a path, a class, what a module
returns, how a reference rounds.
"""

from __future__ import annotations

import importlib.metadata
from collections import Counter

import pytest
from packaging.version import Version

from hosts import overlay, tiny
from hosts.tiny import Family

pytestmark = pytest.mark.slow

FAMILIES = pytest.mark.parametrize("family", tiny.FAMILIES, ids=lambda family: family.name)


@FAMILIES
@pytest.mark.parametrize("end", ["oldest", "newest"])
def test_the_binding_is_right_at_both_ends_of_its_range(family: Family, end: str) -> None:
    host = family.generated().HOST
    assert host.versions is not None
    try:
        version = overlay.ends(host.package, host.versions)[end == "newest"]
        folder = (
            None if version == installed(host.package) else overlay.overlay(host.package, version)
        )
    except overlay.NotAvailable as reason:
        pytest.skip(f"pip can't get it: {reason}")
    report = overlay.verified(folder, family.name, family.name)
    assert report["ok"] and report["found"] == str(version)
    seats = Counter(seat["name"].partition("[")[0] for seat in report["seats"])
    newer = {} if end == "newest" else dict.fromkeys(family.newer, 0)
    assert seats == Counter({**family.seats, **newer})
    assert all(sum(seat["calls"]) > 0 for seat in report["seats"])


def installed(package: str) -> Version:
    return Version(importlib.metadata.version(package))
