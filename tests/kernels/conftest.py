from collections.abc import Callable

import pytest
import torch


@pytest.fixture
def use_reference(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call on, the reference formulas compute, as they do on other devices and under `torch.compile`."""
    return lambda: monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
