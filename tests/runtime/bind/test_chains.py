"""What goes over a chain, and what takes its two ends apart again."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime import Refusal, numerics
from frtspec.runtime.chains.pair import Pair
from frtspec.runtime.chains.wire import Wire
from frtspec.runtime.seats.ledger import Counter, FallbackWarning

SCALE = torch.tensor([0.02])


def wire(reads: list[str] | None = None, dtype: torch.dtype = torch.bfloat16) -> Wire:
    codes = numerics.to_fp8(torch.randn(2, 3, 16), SCALE)
    return Wire(codes, SCALE, dtype, (reads if reads is not None else []).append)


def test_a_wire_looks_like_the_hosts_tensor() -> None:
    reads: list[str] = []
    x = wire(reads)
    assert (x.shape, x.dtype, x.device.type) == (torch.Size([2, 3, 16]), torch.bfloat16, "cpu")
    assert isinstance(x, Tensor) and x.dim() == 3 and x.numel() == 96 and not x.requires_grad
    assert "float8" in repr(x)
    assert reads == []  # none of that looked at a value


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x + 1,
        lambda x: x.view(6, 16),
        lambda x: x[0],
        lambda x: torch.cat([x, x]),
        lambda x: nn.functional.linear(x, torch.ones(4, 16, dtype=x.dtype)),
        lambda x: x.float().sum(),
    ],
)
def test_another_reader_gets_the_values_and_is_told_of(read: object) -> None:
    reads: list[str] = []
    x = wire(reads)
    wanted = read(x.values())  # type: ignore[operator]
    assert torch.equal(read(x), wanted)  # type: ignore[operator]
    assert len(reads) == 1


def test_a_write_is_seen_by_every_later_reader() -> None:
    x = wire(dtype=torch.float32)
    before = x.values()
    x.mul_(2)
    assert torch.equal(x + 0, before * 2)
    assert x.plain is not None and torch.equal(x.plain, before * 2)


def test_codes_are_not_quantised_twice() -> None:
    codes = numerics.to_fp8(torch.randn(4, 16), SCALE)
    assert numerics.to_fp8(codes, SCALE) is codes
    values = codes.float() * SCALE
    assert torch.equal(numerics.fp8_round_trip(codes, SCALE), values)
    assert torch.equal(numerics.to_fp8(values.bfloat16(), SCALE).float(), codes.float())


# ---------------------------------------------------------------- pairs


@pytest.fixture
def pair() -> Pair:
    return made("fallback")


def made(on_guard_fail: str) -> Pair:
    ends = (Counter("norm", "f", on_guard_fail), Counter("qkv", "f", on_guard_fail))
    return Pair("norm.y -> qkv.x", "fp8_e4m3", SCALE, ends)


@pytest.fixture(autouse=True)
def warned() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield


def fact(pair: Pair) -> str:
    return "" if pair.broken is None else pair.broken[0]


def test_codes_go_over_while_both_ends_stand(pair: Pair) -> None:
    for count in (1, 2):
        sent = pair.send(torch.randn(2, 16))
        assert isinstance(sent, Wire)
        for _ in range(3):  # q, k and v
            pair.take(sent)
        assert pair.carried == count
    assert fact(pair) == ""


def test_an_end_that_is_taken_out_leaves_the_other_as_it_is(pair: Pair) -> None:
    module, other = nn.Identity(), nn.Identity()
    children: dict[str, nn.Module | None] = {"q": module}
    pair.places = [(children, "q", module)]
    assert isinstance(pair.send(torch.randn(2, 16)), Wire)
    children["q"] = other
    y = torch.randn(2, 16)
    assert pair.send(y) is y and fact(pair) == ""


def test_a_stranger_at_the_consumer_demotes_both(pair: Pair) -> None:
    given_back: list[str] = []
    for counter in pair.counters:
        counter.give_back = lambda name=counter.seat: given_back.append(name)  # type: ignore[misc]
    sent = pair.send(torch.randn(2, 16))
    pair.take(torch.randn(2, 16))
    assert isinstance(sent, Wire) and fact(pair) == "same_storage"
    assert given_back == ["norm", "qkv"]
    assert all("same_storage" in str(c.ledger().last_reason) for c in pair.counters)
    y = torch.randn(2, 16)
    assert pair.send(y) is y


def test_another_reader_demotes_both(pair: Pair) -> None:
    sent = pair.send(torch.randn(2, 16))
    assert sent.add(1).shape == (2, 16)
    assert fact(pair) == "exclusive_consumer"
    pair.take(sent)  # still what was sent: no second fact
    assert fact(pair) == "exclusive_consumer"
    assert all(counter.detached for counter in pair.counters)


def test_an_output_before_the_first_was_taken_demotes_both(pair: Pair) -> None:
    first = pair.send(torch.randn(2, 16))
    second = pair.send(torch.randn(2, 16))
    assert isinstance(first, Wire) and not isinstance(second, Wire)
    assert fact(pair) == "call_order"


def test_a_call_that_was_broken_off_is_no_disorder(pair: Pair) -> None:
    pair.send(torch.randn(2, 16))  # and the host raised: nobody holds it any more
    gc.collect()
    assert isinstance(pair.send(torch.randn(2, 16)), Wire)
    assert fact(pair) == ""


def test_an_end_that_was_given_back_takes_the_other_with_it(pair: Pair) -> None:
    pair.counters[1].detached = True
    y = torch.randn(2, 16)
    assert pair.send(y) is y
    assert pair.counters[0].detached and fact(pair) == "both_ends"


def test_it_raises_where_the_seats_were_attached_to_raise() -> None:
    pair = made("raise")
    sent = pair.send(torch.randn(2, 16))
    with pytest.raises(Refusal, match="exclusive_consumer no longer holds") as caught:
        sent.add(1)
    assert caught.value.code == "guard.chain"
