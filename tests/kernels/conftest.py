from collections.abc import Callable

import pytest
import torch


@pytest.fixture
def use_reference(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """When called, switches to the reference formulas, as used on other devices and under `torch.compile`."""
    return lambda: monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
