"""Collectors: a stream of calls and samples gives what all of it at once would."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from frtspec.runtime.calibration.statistics import (
    KEPT,
    Amax,
    Collector,
    Histogram,
    SecondMoment,
    Top,
    collector,
    percentile_of,
)
from frtspec.runtime.spec import Stat

Stream = list[list[Tensor]]
"""Samples of calls."""


def collect(into: Collector, stream: Stream) -> None:
    for sample in stream:
        for call in sample:
            into.see(call)
        row = into.close()
        assert row is not None
        into.add(row)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """Samples of calls, [rows, channels] or [batch, rows, channels], of very unequal size."""
    channels = draw(st.integers(1, 40))
    seed = draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    stream: Stream = []
    for _ in range(draw(st.integers(1, 5))):
        sample = []
        for _ in range(draw(st.integers(1, 3))):
            lead = draw(st.sampled_from([(1,), (5,), (2, 3)]))
            size = 10.0 ** draw(st.integers(-6, 4))
            sample.append(size * torch.randn(*lead, channels, generator=generator))
        stream.append(sample)
    return stream


def rows_of(sample: list[Tensor]) -> Tensor:
    return torch.cat([call.reshape(-1, call.shape[-1]) for call in sample])


@given(streams(), st.sampled_from([100.0, 99.9, 50.0, 3.0]))
@settings(max_examples=25, deadline=None)
def test_amax_of_a_stream_is_numpys(stream: Stream, percentile: float) -> None:
    per_sample = np.stack([rows_of(sample).abs().amax(0).double().numpy() for sample in stream])
    by_channel, tensor = Amax("channel"), Amax("tensor")
    collect(by_channel, stream)
    collect(tensor, stream)
    expected = np.percentile(per_sample, percentile, axis=0)
    np.testing.assert_allclose(by_channel.value(percentile).numpy(), expected, rtol=1e-12)
    whole = np.percentile(per_sample.max(axis=1), percentile)
    assert float(tensor.value(percentile)) == pytest.approx(whole, rel=1e-12)
    assert torch.equal(by_channel.overall(percentile), tensor.value(percentile))
    assert by_channel.largest == tensor.largest == list(per_sample.max(axis=1))


@given(streams(), st.integers(2, 17))
@settings(max_examples=15, deadline=None)
def test_a_block_is_the_largest_of_its_channels(stream: Stream, size: int) -> None:
    blocks, channels = Amax("block", size), Amax("channel")
    collect(blocks, stream)
    collect(channels, stream)
    by_channel = channels.value(100)
    expected = [float(part.max()) for part in torch.split(by_channel, size)]
    assert blocks.value(100).tolist() == expected


@given(streams())
@settings(max_examples=25, deadline=None)
def test_the_second_moment_is_a_sum_over_a_count(stream: Stream) -> None:
    found = SecondMoment()
    collect(found, stream)
    every = torch.cat([rows_of(sample) for sample in stream]).double()
    torch.testing.assert_close(found.value(99.9), (every**2).mean(0), rtol=1e-12, atol=0)
    assert torch.equal(found.value(1.0), found.value(100.0))


@given(streams(), st.sampled_from([64, 2048]))
@settings(max_examples=25, deadline=None)
def test_a_histogram_counts_the_same_in_any_order(stream: Stream, bins: int) -> None:
    found, backwards, at_once = Histogram(bins), Histogram(bins), Histogram(bins)
    collect(found, stream)
    collect(backwards, [sample[::-1] for sample in reversed(stream)])
    every = torch.cat([rows_of(sample).reshape(-1) for sample in stream])
    collect(at_once, [[every]])
    assert found.edge == backwards.edge == at_once.edge
    assert torch.equal(found.value(99.9), at_once.value(99.9))
    assert torch.equal(found.value(99.9), backwards.value(99.9))
    counts, _ = np.histogram(every.abs().double().numpy(), bins=bins, range=(0, found.edge))
    assert found.value(50).tolist() == counts.tolist()
    largest = float(every.abs().max())
    assert largest < found.edge <= 2 * largest
    for share in (0.25, 0.5, 0.999):
        true = float(np.quantile(every.abs().double().numpy(), share, method="inverted_cdf"))
        assert 0 <= found.quantile(share) - true <= found.edge / bins


def test_a_histogram_of_nothing_but_zeros_and_of_very_small_values() -> None:
    zeros, small = Histogram(64), Histogram(64)
    collect(zeros, [[torch.zeros(3, 4)]])
    assert zeros.value(100)[0] == 12 and zeros.largest == [0.0]
    collect(small, [[torch.full((2, 2), 1e-40)], [torch.ones(1, 2)]])
    assert small.value(100).sum() == 6 and small.edge == 2.0


@pytest.mark.parametrize("bins", [1, 0, 100])
def test_bins_are_a_power_of_two(bins: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        Histogram(bins)


# ---------------------------------------------------------------- memory


def test_a_long_stream_keeps_the_top_and_no_more() -> None:
    width, samples = KEPT // 16, 60
    generator = torch.Generator().manual_seed(0)
    rows = [torch.rand(width, generator=generator) for _ in range(samples)]
    top = Top()
    for row in rows:
        top.add(row)
        assert len(top._rows) <= 32
    every = torch.stack(rows).double()
    assert top.reached(99.9) == 99.9
    assert torch.equal(top.value(99.9), percentile_of(every, 99.9))
    reached = top.reached(50)
    assert 60 < reached < 99
    torch.testing.assert_close(top.value(50), percentile_of(every, reached), rtol=1e-12, atol=0)
    assert bool((top.value(50) >= percentile_of(every, 50)).all())


def test_few_samples_are_kept_whole() -> None:
    top = Top()
    for value in range(10):
        top.add(torch.full((KEPT,), float(value)))
    assert top.reached(50) == 50 and float(top.value(50)[0]) == 4.5


# ---------------------------------------------------------------- what there is


def test_a_statistic_without_a_collector_has_none() -> None:
    for stat in (
        Stat("mean"),
        Stat("amax", "row"),
        Stat("amax", "block"),
        Stat("histogram", "row"),
    ):
        assert collector(stat) is None
    assert isinstance(collector(Stat("amax", "block", size=16)), Amax)
    assert isinstance(collector(Stat("histogram", bins=64)), Histogram)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_is_left_for_the_recorder_to_refuse(value: float) -> None:
    bad = torch.tensor([[1.0, value]])
    for stat in (
        Stat("amax"),
        Stat("amax", "channel"),
        Stat("second_moment", "channel"),
        Stat("histogram", bins=64),
    ):
        found = collector(stat)
        assert found is not None
        found.see(torch.ones(1, 2))
        found.see(bad)
        row = found.close()
        assert row is not None and not bool(row.isfinite().all())
