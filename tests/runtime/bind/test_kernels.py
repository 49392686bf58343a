"""Loading kernel packages: real local packages on disk, and each way that loading fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import kernels as client
import pytest
import torch
from huggingface_hub import constants

from frtspec.runtime.errors import Refusal
from frtspec.runtime.rungs import kernels

NAME = "acme/silu-mul"
_ids = count()

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No results of other tests, no local packages, no network."""
    monkeypatch.delenv("LOCAL_KERNELS", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    kernels.forget()
    yield
    kernels.forget()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a pure-Python package and name it in LOCAL_KERNELS."""

    def make(
        code: str = "def silu_mul(x):\n    return x\n",
        *,
        variant: str = "torch-cpu",
        metadata: dict[str, Any] | None = None,
        bare: bool = False,
    ) -> Path:
        number = next(_ids)
        folder = tmp_path / f"package{number}"
        build = folder / "build" / variant
        build.mkdir(parents=True)
        (build / "__init__.py").write_text(code)
        facts = {
            "name": "acme-silu-mul",
            "id": f"_acme_silu_mul_{number}_{tmp_path.name.replace('-', '_')}",
            "version": 1,
            "license": "Apache-2.0",
            "python-depends": [],
            "backend": {"type": "cpu"},
        }
        if not bare:
            (build / "metadata.json").write_text(json.dumps(facts | (metadata or {})))
        monkeypatch.setenv("LOCAL_KERNELS", f"{NAME}={folder}")
        return folder

    return make


def refused(*args: Any, **kwargs: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        kernels.load(*(args or ("hub", NAME, 1)), **kwargs)
    assert caught.value.fix and NAME.split("/")[1] in caught.value.what
    return caught.value


# ---------------------------------------------------------------- loading


def test_a_local_package_loads_and_says_that_it_is_unpinned(write: Write) -> None:
    folder = write()
    loaded = kernels.load("hub", NAME, 1, ("silu_mul",))
    assert loaded.module.silu_mul(3) == 3
    assert loaded.origin == f"local override {folder}, unpinned"
    assert kernels.load("hub", NAME, 1) is loaded


def test_the_variable_may_change_in_the_process(write: Write) -> None:
    write("def silu_mul(x):\n    return 1\n")
    first = kernels.load("hub", NAME, 1)
    write("def silu_mul(x):\n    return 2\n")
    assert kernels.load("hub", NAME, 1).module.silu_mul(0) == 2
    assert first.module.silu_mul(0) == 1


def test_a_shipped_package_loads(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write()
    monkeypatch.delenv("LOCAL_KERNELS")
    monkeypatch.setattr(kernels, "SHIPPED", folder.parent)
    loaded = kernels.load("local", folder.name)
    assert loaded.origin == "shipped with frtspec" and loaded.module.silu_mul(2) == 2


def test_a_shipped_package_that_is_not_there() -> None:
    with pytest.raises(Refusal) as caught:
        kernels.load("local", "frt-no-such")
    assert caught.value.code == "kernel.missing" and "frt-no-such" in caught.value.what


# ---------------------------------------------------------------- real failures


def test_a_missing_entry(write: Write) -> None:
    write()
    found = refused("hub", NAME, 1, ("silu_mul", "gelu_mul"))
    assert found.code == "kernel.entry" and "gelu_mul" in found.what


def test_an_entry_of_local_kernels_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_KERNELS", f"{NAME}=/tmp:")
    with pytest.raises(Refusal) as caught:
        kernels.load("hub", NAME, 1)
    assert caught.value.code == "kernel.local_entry"


def test_a_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_KERNELS", f"{NAME}=/no/such/folder")
    found = refused()
    assert found.code == "kernel.local_path" and "/no/such/folder" in found.what


def test_no_build_for_this_torch(write: Write) -> None:
    write(variant="torch-cuda")
    found = refused()
    assert found.code == "kernel.no_build" and "torch-cuda" in found.what


def test_no_metadata(write: Write) -> None:
    write(bare=True)
    assert refused().code == "kernel.metadata"


def test_metadata_that_is_no_metadata(write: Write) -> None:
    write(metadata={"name": "Not A Name!"})
    assert refused().code in ("kernel.metadata", "kernel.failed")


def test_an_unknown_dependency(write: Write) -> None:
    write(metadata={"python-depends": ["triton"]})
    assert refused().code == "kernel.dependency"


@pytest.mark.parametrize(
    "code",
    [
        "import no_such_module\n",
        "from ._missing import thing\n",
        "raise OSError('libcublasLt.so.12: cannot open shared object file')\n",
        "raise RuntimeError('Only a single TORCH_LIBRARY can be used')\n",
        "syntax error here\n",
    ],
)
def test_code_that_fails_while_imported(write: Write, code: str) -> None:
    write(code)
    assert refused().code == "kernel.import"


def test_the_first_failure_is_kept_and_not_retried(write: Write) -> None:
    folder = write("raise RuntimeError('the first reason')\n")
    assert "the first reason" in refused().what
    (folder / "build" / "torch-cpu" / "__init__.py").write_text("def silu_mul(x):\n    return x\n")
    again = refused()
    assert again.code == "kernel.import" and "the first reason" in again.what


def test_offline_and_not_in_the_cache() -> None:
    found = refused("hub", "acme/silu-mul-nowhere", 3)
    assert found.code == "kernel.offline"
    assert "LOCAL_KERNELS='acme/silu-mul-nowhere=" in found.fix


def test_a_range_is_no_version(write: Write) -> None:
    write()
    with pytest.raises(Refusal):
        kernels.load("hub", NAME, ">=1")  # type: ignore[arg-type]


def test_a_device_that_no_build_is_for(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(variant="torch-cuda", metadata={"backend": {"type": "cuda", "archs": ["12.0a"]}})
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    found = refused()
    assert found.code == "kernel.arch" and "9.0" in found.what and "12.0a" in found.what


# ---------------------------------------------------------------- failures as the Hub words them


class ConnectError(Exception):
    """httpx's: of none of the built-in kinds."""


class RepositoryNotFoundError(Exception):
    """huggingface_hub's."""


HUB = {
    "kernel.untrusted": ValueError(f"Kernel repository '{NAME}' is not from a trusted publisher."),
    "kernel.unreachable": ValueError("x could not verify publisher trust status. Set y"),
    "kernel.version": ValueError("Version 9 not found, available versions: 1, 2"),
    "kernel.client": RuntimeError("Kernel 'x' variant 'y' requires kernels>=0.99, but version"),
    "kernel.dependency": ImportError("Kernel module `x` requires Python dependency `einops`."),
    "kernel.not_found": RepositoryNotFoundError("404 Client Error"),
    "kernel.import": ImportError("libfoo.so: undefined symbol"),
    "kernel.failed": KeyError("something new"),
}


@pytest.mark.parametrize("code", list(HUB))
def test_each_failure_has_its_code(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise HUB[code]

    monkeypatch.setattr(client, "get_kernel", fail)
    found = refused()
    assert found.code == code
    assert str(HUB[code]) in found.what


def test_no_route_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ConnectError("[Errno -3] Temporary failure in name resolution")

    monkeypatch.setattr(client, "get_kernel", fail)
    found = refused()
    assert found.code == "kernel.unreachable" and "name resolution" in found.what


def test_untrusted_code_is_never_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def record(_: str, **kwargs: Any) -> Any:
        seen.append(kwargs)
        raise KeyError

    monkeypatch.setattr(client, "get_kernel", record)
    refused()
    assert seen == [{"version": 1}]


@pytest.mark.parametrize("found", ["0.16.9", "1.0.0"])
def test_a_client_of_another_version(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.importlib.metadata, "version", lambda _: found)
    with pytest.raises(Refusal) as caught:
        kernels.load("hub", NAME, 1)
    assert caught.value.code == "kernel.client" and found in caught.value.what


def test_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise kernels.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(kernels.importlib.metadata, "version", missing)
    with pytest.raises(Refusal) as caught:
        kernels.load("hub", NAME, 1)
    assert caught.value.code == "kernel.client" and "pip install" in caught.value.fix


def test_interrupts_pass_and_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(client, "get_kernel", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernels.load("hub", NAME, 1)
    monkeypatch.undo()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refused().code == "kernel.offline"
