"""What a run was made on: for people who compare speeds, or cannot reproduce a figure."""

import os
import platform
from pathlib import Path

import torch


def hardware() -> dict[str, str | int | float]:
    """Processor, cores, threads, memory and GPUs, as far as the system tells."""
    found: dict[str, str | int | float] = {"processor": _processor(), "cores": os.cpu_count() or 0}
    found["threads"] = torch.get_num_threads()
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory_gb"] = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    if torch.cuda.is_available():
        found["gpus"] = ", ".join(torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count()))
    return found


def _processor(cpu_info: Path = Path("/proc/cpuinfo")) -> str:
    """The name of the processor, which Linux has in a file and other systems tell Python."""
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
