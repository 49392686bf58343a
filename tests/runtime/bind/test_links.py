"""Chains and groups: what a run of the host shows about them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime.hosts import links
from frtspec.runtime.spec import (
    Boundary,
    Chain,
    InputOf,
    OutputOf,
    Seat,
    SeatGroup,
    StructureSpec,
    numbers_of,
)

SPEC = StructureSpec(
    name="scaled",
    version=1,
    source_digest="0" * 64,
    contract_digest="1" * 64,
    inputs=("x", "cond"),
    outputs=("y",),
    optional=(),
    slots=(),
    shapes={},
    variants={},
    params={},
    points={},
    seams={},
    boundary_gate=(),
    latency_against=(),
    reference=lambda x, cond: x * cond,
)


class Scaled(nn.Module):
    def forward(self, x: Tensor, cond: Tensor) -> Tensor:
        return x * cond


class Host(nn.Module):
    """``first`` hands to ``second``; ``between`` is what the host does in between."""

    def __init__(self, between: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.third = Scaled(), Scaled(), Scaled()
        self.between = between

    def forward(self, x: Tensor, cond: Tensor) -> Tensor:
        y = self.second(self.between(self.first(x, cond=cond)), cond=cond)
        return self.third(y, cond=cond + 0)


def seat(name: str) -> Seat:
    at = name.partition("[")[0]
    places = {"x": InputOf(at), "cond": InputOf(at, "cond")}
    return Seat(
        name=name,
        structure=SPEC,
        seam=None,
        path=at,
        form="swap",
        variants={},
        params={},
        dims={},
        slots={},
        points={},
        boundary=Boundary(path=at, inputs=places, outputs={"y": OutputOf(at)}),
    )


SEATS = [seat("first"), seat("second"), seat("third")]
BOTH = ("same_storage", "exclusive_consumer")
EVERY = (*BOTH, "call_order", "repeats")
"""What is looked at for any chain."""


def shown(
    link: Chain | SeatGroup, between: Callable[[Tensor], Tensor] = lambda x: x, size: int = 2
) -> dict[str, str]:
    model = Host(between)
    x = torch.randn(size, 3)
    with links.watching(model, SEATS, [link]) as proofs:
        for cond in (torch.ones(1, 3), torch.full((1, 3), 2.0)):
            model(x, cond)
        found = {proof.fact: proof.what for proof in proofs()}
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    return found


def chain(producer: str = "first", consumer: str = "second") -> Chain:
    return Chain(producer, "y", consumer, "x", "bf16", BOTH)


def test_a_value_handed_on_is_shown() -> None:
    assert shown(chain()) == dict.fromkeys(EVERY, "")


def test_a_view_on_the_way_reads_nothing() -> None:
    assert shown(chain(), lambda x: x.view(-1, 3)) == dict.fromkeys(EVERY, "")


def test_a_copy_is_another_tensor() -> None:
    found = shown(chain(), lambda x: x.clone())
    assert found["same_storage"] == "second got another tensor"
    assert found["exclusive_consumer"] == "clone read it too"


def test_another_reader_is_named() -> None:
    def between(x: Tensor) -> Tensor:
        torch.amax(x)
        return x

    found = shown(chain(), between)
    assert found == dict.fromkeys(EVERY, "") | {"exclusive_consumer": "amax read it too"}


def test_an_attribute_that_is_asked_for_is_no_read() -> None:
    def between(x: Tensor) -> Tensor:
        assert x.dtype == torch.float32 and x.shape[-1] == 3
        return x

    assert shown(chain(), between) == dict.fromkeys(EVERY, "")


def test_a_write_by_an_operator_is_a_read() -> None:
    def between(x: Tensor) -> Tensor:
        x += 1
        return x

    assert "read it too" in shown(chain(), between)["exclusive_consumer"]


def test_one_round_shows_nothing_that_repeats() -> None:
    model = Host(lambda x: x)
    with links.watching(model, SEATS, [chain()]) as proofs:
        model(torch.randn(2, 3), torch.ones(1, 3))
        found = {proof.fact: proof.what for proof in proofs()}
    assert found["repeats"] == "the producer ran 1 time; it takes 2"
    assert found["same_storage"] == ""


def test_an_output_before_the_first_was_taken_is_disorder() -> None:
    model = Host(lambda x: x)
    with links.watching(model, SEATS, [chain()]) as proofs:
        for _ in range(2):
            model.first(torch.randn(2, 3), cond=torch.ones(1, 3))
        model(torch.randn(2, 3), torch.ones(1, 3))
        found = {proof.fact: proof.what for proof in proofs()}
    assert found["call_order"] == "the producer ran again before its output was taken"


def test_a_write_on_the_way_is_a_reader() -> None:
    assert shown(chain(), lambda x: x.add_(1))["exclusive_consumer"] == "add_ read it too"


def test_a_producer_that_never_runs() -> None:
    found = shown(chain("third", "first"))
    assert {found[fact] for fact in BOTH} == {"first got another tensor"}
    assert found["call_order"] == "the consumer ran first"


@pytest.mark.parametrize(
    ("names", "prove", "what"),
    [
        (("first", "second"), "same_stream", ""),
        (("first", "third"), "same_stream", ""),  # another tensor of the same values
        (("first", "second"), "same_width", ""),
        (("first", "second"), "same_rows", ""),
    ],
)
def test_groups(names: tuple[str, ...], prove: str, what: str) -> None:
    group = SeatGroup("style", names, "first_called", (prove,))
    assert shown(group) == {prove: what}


def test_a_group_of_two_streams_and_another_writer() -> None:
    model = Host(lambda x: x)
    model.third.forward = lambda x, cond: Scaled.forward(model.third, x, cond)  # type: ignore[method-assign]
    group = SeatGroup("style", ("first", "third"), "third", ("same_stream", "same_rows"))
    with links.watching(model, SEATS, [group]) as proofs:
        model.first(torch.ones(2, 3), cond=torch.ones(1, 3))
        model.third(torch.ones(4, 3), cond=torch.zeros(1, 3))
        found = {proof.fact: proof.what for proof in proofs()}
    assert found == {
        "same_stream": "first and third differ",
        "same_rows": "first and third differ",
        "writer third": "first is called first",
    }


def test_a_link_to_a_seat_that_this_model_has_not_is_left_out() -> None:
    assert shown(chain("first", "fourth")) == {}
    assert shown(SeatGroup("style", ("fourth",), "first_called", ("same_rows",))) == {}


def test_texts_and_numbers() -> None:
    proof = links.Proof("a.y -> b.x", "same_storage", False, "why")
    assert proof.text == "a.y -> b.x: same_storage not shown: why"
    numbered = [seat("first[0]"), seat("second[0]"), seat("first[1]")]
    assert numbers_of(numbered, "first") == ("first[0]", "first[1]")
