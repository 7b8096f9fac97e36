"""The same program in two connected processes, as torchrun would start them."""

import socket
from subprocess import CompletedProcess

from support.processes import environment
from support.warm_python import Program


def run_two(program: str, *arguments: str, timeout: float = 240) -> list[CompletedProcess[str]]:
    """How both ended, by rank."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = [environment(**common, RANK=str(rank), LOCAL_RANK=str(rank)) for rank in range(2)]
    programs = [Program(program, *arguments, env=rank) for rank in ranks]
    try:
        return [one.finish(timeout=timeout) for one in programs]
    finally:
        for one in programs:
            one.kill()
