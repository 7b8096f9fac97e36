"""Moving average, device and precision, random numbers, allocator."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch

from support.processes import environment
from support.training_toys import make_model, same, weights
from translator.devices import choose_device
from translator.errors import UserError
from translator.kernels import allocator
from translator.training.ema import ExponentialMovingAverage
from translator.training.precision import Execution, choose_execution
from translator.training.random_state import (
    random_state,
    restore_random_state,
    seed_everything,
    untouched_random_state,
)

CPU = torch.device("cpu")


class TestMovingAverage:
    def test_by_hand(self) -> None:
        model = make_model()
        ema = ExponentialMovingAverage(model, 0.5)
        expected = model.hidden.bias.detach().clone().double()
        for update, decay in ((1, 2 / 11), (2, 3 / 12), (20, 0.5)):
            with torch.no_grad():
                model.hidden.bias.add_(update)
            ema.update(update)
            expected = decay * expected + (1 - decay) * model.hidden.bias.detach().double()
        torch.testing.assert_close(ema.weights["hidden.bias"].double(), expected, rtol=1e-6, atol=1e-6)

    def test_it_replaces_the_weights_temporarily(self) -> None:
        model = make_model()
        ema = ExponentialMovingAverage(model, 0.9)
        with torch.no_grad():
            model.embedding.weight.mul_(3)
        own = weights(model)

        def look_and_fail() -> None:
            assert torch.equal(model.output.weight, ema.weights["embedding.weight"])
            assert not torch.equal(model.output.weight, own["embedding.weight"])
            raise RuntimeError

        with pytest.raises(RuntimeError), ema.in_place_of_weights():
            look_and_fail()
        assert same(weights(model), own)


class TestPrecision:
    def test_auto_is_float32_on_the_cpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
        assert choose_execution("auto", "auto") == Execution(CPU, torch.float32)

    @pytest.mark.parametrize(("has_bf16", "dtype"), [(True, torch.bfloat16), (False, torch.float16)])
    def test_auto_prefers_the_gpu_and_a_format_it_supports(
        self, monkeypatch: pytest.MonkeyPatch, has_bf16: bool, dtype: torch.dtype
    ) -> None:
        chosen = []
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bf16)
        before = torch.get_float32_matmul_precision()
        try:
            execution = choose_execution("auto", "auto", local_rank=1)
            assert torch.get_float32_matmul_precision() == "high"
        finally:
            torch.set_float32_matmul_precision(before)
        assert execution == Execution(torch.device("cuda", 1), dtype)
        assert chosen == [torch.device("cuda", 1)]

    def test_mps_comes_before_the_cpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
        assert choose_device("auto") == torch.device("mps")

    def test_a_device_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        with pytest.raises(UserError, match=r"trainer.device=cuda:2: .*2 of them found"):
            choose_device("cuda:2")
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        with pytest.raises(UserError, match=r"trainer.device=cuda: .*none found"):
            choose_device("cuda")

    def test_autocast_and_scaler_follow_the_format(self) -> None:
        product = torch.ones(2, 2) @ torch.ones(2, 2)
        assert product.dtype == torch.float32
        with Execution(CPU, torch.bfloat16).autocast():
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
        with Execution(CPU).autocast():
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
        enabled = [Execution(CPU, dtype).grad_scaler().is_enabled() for dtype in (torch.float16, torch.bfloat16)]
        assert enabled == [True, False]


def draw() -> list[float]:
    of_numpy = [float(np.random.rand()), float(np.random.randn())]  # noqa: NPY002 - the global generator is intended
    return [random.random(), random.gauss(), *of_numpy, torch.rand(()).item()]


def test_random_numbers_continue_where_they_stopped() -> None:
    seed_everything(2**62)
    draw()
    state = random_state(CPU)
    expected = draw() + draw()
    seed_everything(1)
    restore_random_state(state, CPU)
    assert draw() + draw() == expected
    restore_random_state(state, CPU)
    with untouched_random_state(CPU):
        draw()
    assert draw() + draw() == expected


def test_seeds_differ() -> None:
    drawn = []
    for seed in (1, 2, 1):
        seed_everything(seed)
        drawn.append(draw())
    assert drawn[0] == drawn[2]
    assert all(first != second for first, second in zip(drawn[0], drawn[1], strict=True))


KEEP = """
import resource, threading, torch
from translator.kernels.allocator import keep_memory
print(keep_memory(threads_share={threads_share}))
def work():
    for _ in range(20):
        torch.empty({numbers}).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def count():
    before = work()
    print(work() - before)
count()
thread = threading.Thread(target=count)
thread.start()
thread.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="concerns glibc on Linux")
@pytest.mark.parametrize(("threads_share", "numbers"), [(True, 16_000_000), (False, 12_000_000)])
def test_memory_is_kept_by_the_main_thread_and_by_another(threads_share: bool, numbers: int) -> None:
    """64 MB is nearly 16,000 pages: without the setting, every round would fault them all in again."""
    script = KEEP.format(threads_share=threads_share, numbers=numbers)
    result = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=True, timeout=120
    )
    accepted, *faults = result.stdout.split()
    if accepted == "False":
        pytest.skip("not glibc")
    pages = numbers * 4 // 4_096
    assert [int(number) < pages for number in faults] == [True, True], faults


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(allocator.os, "confstr", unknown)
    assert allocator.keep_memory() is False
    monkeypatch.delattr(allocator.os, "confstr")
    assert allocator.keep_memory() is False
