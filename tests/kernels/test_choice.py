"""When kernels replace the reference formulas, and that only one module decides it."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from translator.kernels.choice import use_kernels

PACKAGE = Path(__file__).parents[2] / "translator"
ASKS = re.compile(r"device\.type|is_cpu|is_cuda|is_compiling|is_autocast")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_and_double_precision_on_the_cpu(dtype: torch.dtype) -> None:
    assert use_kernels(torch.zeros(2, dtype=dtype))
    assert use_kernels(torch.zeros(2, dtype=dtype), torch.zeros(3, dtype=dtype))


@pytest.mark.parametrize(
    "operands",
    [
        (torch.zeros(2, dtype=torch.bfloat16),),
        (torch.zeros(2, dtype=torch.float16),),
        (torch.zeros(2, device="meta"),),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2), torch.zeros(2, device="meta")),
    ],
    ids=["bfloat16", "float16", "another device", "two types", "two devices"],
)
def test_other_operands(operands: tuple[torch.Tensor, ...]) -> None:
    assert not use_kernels(*operands)


def test_autocast_and_compilation() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert not use_kernels(torch.zeros(2))
    compiled = torch.compile(lambda x: x + 1 if use_kernels(x) else x - 1, backend="eager", fullgraph=True)
    assert compiled(torch.zeros(1)).item() == -1
    assert use_kernels(torch.zeros(2))


def test_no_other_module_checks_the_device() -> None:
    files = [path for room in ("attention", "models", "kernels") for path in (PACKAGE / room).rglob("*.py")]
    files += [
        PACKAGE / "training/objectives/cross_entropy.py",
        PACKAGE / "decoding/beam.py",
        PACKAGE / "decoding/constraints.py",
    ]
    asking = [str(path.relative_to(PACKAGE)) for path in files if ASKS.search(path.read_text(encoding="utf-8"))]
    assert asking == ["kernels/choice.py"]


def test_memory_is_kept_only_where_the_device_is_a_cpu() -> None:
    """A GPU has an allocator of its own, and keeping all memory of the host would gain nothing there.

    Commands that translate leave it to the translator.
    """
    calls = [
        (path.name, before)
        for path in sorted(PACKAGE.rglob("*.py"))
        for before, line in pairwise(path.read_text(encoding="utf-8").splitlines())
        if line.strip().startswith("keep_memory(")
    ]
    assert [name for name, _ in calls] == ["api.py", "train.py"]
    assert [name for name, before in calls if '.device.type == "cpu"' not in before] == []
