"""What can't be done to a model while seats are attached, refused at its root.

Packs are made from the weights as they were, on the device where they were. Moving,
retyping, reloading, training or copying the model would leave them behind, so these
calls raise a Refusal before anything is touched. A call that changes nothing (``.to``
the same place, ``eval()``) passes. The refusals are attributes of this one model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal

_KEY = "_frt_root"

DTYPE_METHODS = {
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "float": torch.float32,
    "double": torch.float64,
}
ADAPTER_METHODS = ("add_adapter", "load_adapter", "load_lora_adapter", "fuse_lora", "unfuse_lora")
"""Of transformers' and diffusers' models: they wrap linears, or write into their weights."""

DEVICE_METHODS = ("cuda", "cpu", "xpu", "mtia", "ipu")


class Root:
    """The refusals on one model, and the attachments that need them.

    ``install`` and ``remove`` may be broken off anywhere and called again.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.users: list[object] = []
        self.methods = self._methods()
        held = model.__dict__
        self.before = {name: held[name] for name in self.methods if name in held}

    def install(self) -> None:
        self.model.__dict__.update(self.methods)

    def remove(self) -> None:
        held = self.model.__dict__
        for name in self.methods:
            held.pop(name, None)
        held.update(self.before)

    # ------------------------------------------------------------ the methods

    def _methods(self) -> dict[str, Callable[..., Any]]:
        methods: dict[str, Callable[..., Any]] = {
            "to": self._to,
            "type": lambda *a, **k: self._refuse("type", "change its dtype"),
            "to_empty": lambda *a, **k: self._refuse("to_empty", "drop its weights"),
            "train": self._train,
            "load_state_dict": lambda *a, **k: self._refuse(
                "load_state_dict", "load other weights: the packs belong to the present ones"
            ),
            "__deepcopy__": lambda memo: self._refuse("copied", "copy it"),
            "__reduce_ex__": lambda protocol: self._refuse("pickled", "copy or pickle it"),
        }
        for name in ADAPTER_METHODS:
            if hasattr(type(self.model), name):
                methods[name] = self._adapted(name)
        for name, dtype in DTYPE_METHODS.items():
            methods[name] = self._retype(name, dtype)
        for name in DEVICE_METHODS:
            methods[name] = self._move(name)
        return methods

    def _original(self, name: str) -> Callable[..., Any]:
        if name in self.before:
            found: Callable[..., Any] = self.before[name]
            return found
        bound: Callable[..., Any] = getattr(type(self.model), name).__get__(self.model)
        return bound

    def _to(self, *args: Any, **kwargs: Any) -> Any:
        parsed: tuple[Any, ...] = torch._C._nn._parse_to(*args, **kwargs)
        device, dtype, _, memory_format = parsed
        if memory_format is not None or not self._is_at(device) or not self._is_of(dtype):
            what = ", ".join(str(item) for item in (device, dtype, memory_format) if item)
            self._refuse("to", f"take it to {what}")
        return self._original("to")(*args, **kwargs)

    def _retype(self, name: str, dtype: torch.dtype) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> Any:
            if not self._is_of(dtype):
                self._refuse(name, f"make it {dtype}")
            return self._original(name)(*args, **kwargs)

        return method

    def _move(self, name: str) -> Callable[..., Any]:
        def method(device: Any = None) -> Any:
            index = device if isinstance(device, int) else None
            place = torch.device(name, index) if index is not None else torch.device(device or name)
            if not self._is_at(place):
                self._refuse(name, f"move it to {place}")
            return self._original(name)(device) if device is not None else self._original(name)()

        return method

    def _adapted(self, name: str) -> Callable[..., Any]:
        def method(*args: Any, **kwargs: Any) -> NoReturn:
            self._refuse(name, "put an adapter into it: packs hold the weights without one")

        return method

    def _train(self, mode: bool = True) -> Any:
        if mode:
            self._refuse("train", "train it: packed weights don't learn")
        return self._original("train")(mode)

    def _refuse(self, code: str, what: str) -> NoReturn:
        raise Refusal(
            f"attached.{code}",
            f"seats are attached to this {type(self.model).__name__}; can't {what}",
            fix="call detach() first, and attach again afterwards",
        )

    # ------------------------------------------------------------ what the model is now

    def _tensors(self) -> list[Tensor]:
        return [*self.model.parameters(), *self.model.buffers()]

    def _is_of(self, dtype: torch.dtype | None) -> bool:
        floating = (t.dtype for t in self._tensors() if t.is_floating_point())
        return dtype is None or all(found == dtype for found in floating)

    def _is_at(self, device: torch.device | None) -> bool:
        return device is None or all(_same_place(t.device, device) for t in self._tensors())


def _same_place(found: torch.device, wanted: torch.device) -> bool:
    """``cuda`` without a number is the current device."""
    if found.type != wanted.type:
        return False
    number = str(wanted).partition(":")[2]
    if not number:
        return found.type != "cuda" or found.index == torch.cuda.current_device()
    return (str(found).partition(":")[2] or "0") == number


def hold(model: nn.Module, user: object) -> None:
    """Put the refusals on a model for an attachment; once, however many need them."""
    root = model.__dict__.get(_KEY)
    if root is None:
        root = Root(model)
        root.users.append(user)
        model.__dict__[_KEY] = root
    elif user not in root.users:
        root.users.append(user)
    root.install()


def release(model: nn.Module, user: object) -> None:
    """An attachment needs them no longer; the last one takes them off."""
    root = model.__dict__.get(_KEY)
    if root is None or user not in root.users:
        return
    if len(root.users) == 1:
        root.remove()
        del model.__dict__[_KEY]
    root.users.remove(user)


def users(model: nn.Module) -> tuple[Any, ...]:
    """The attachments on a model, in the order they came."""
    root = model.__dict__.get(_KEY)
    return () if root is None else tuple(root.users)
