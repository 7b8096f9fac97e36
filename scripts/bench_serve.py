"""Measures `translate-serve` on this machine: many clients at once compared with one, and a soak test.

    python scripts/bench_serve.py [--run DIR] [--text FILE] [--seconds S] [--clients N] [--soak MINUTES]

The server runs in its own process on a free loopback port; the clients are coroutines of this process. With
--soak, requests then arrive at twice the rate that the clients reached: each must be answered, with a
translation or with status 429, and the memory of the server must not grow. Without --run, a tiny model is trained.
"""

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import psutil

from bench_startup import train_tiny_run

WANTED_RATIO = 3.0
LONGEST_PHASE = 600.0  # seconds
LONGEST_SOAK = 120.0  # minutes
MOST_OPEN = 2_000  # unanswered requests at a time in the soak test
LONGEST_IDLE = 3.0  # seconds; the server closes a connection after five, perhaps just as a request is being sent
ALLOWED_GROWTH = 0.05
SENTENCES = [
    f"The {adjective} {noun} {verb} {place}."
    for adjective in ("old", "clever", "famous")
    for noun in ("doctor", "dog", "architect")
    for verb in ("sleeps", "works", "waits")
    for place in ("in the garden", "near the old station", "when it rains", "because the train is late")
]


class Client:
    """One connection, kept open between requests."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.last_used = 0.0

    async def translate(self, text: str) -> int:
        """The status of the answer."""
        is_idle = time.monotonic() - self.last_used > LONGEST_IDLE
        if self.streams is None or is_idle or self.streams[0].at_eof():
            self.close()
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        headers = f"Host: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(f"POST /translate HTTP/1.1\r\n{headers}".encode() + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", lines)
        await reader.readexactly(int(length[1]) if length else 0)
        self.last_used = time.monotonic()
        return int(lines.split()[1])

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()


@contextmanager
def server(run: Path, arguments: list[str]) -> Iterator[tuple[int, psutil.Process]]:
    """The port and the process of a server, which is stopped at the end."""
    command = [sys.executable, "-m", "translator.serve", "--model", str(run), "--port", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"Listening on http://127\.0\.0\.1:(\d+)", line):
                yield int(found[1]), psutil.Process(process.pid)
                return
        raise SystemExit("the server did not start")
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


async def closed_loop(port: int, num_clients: int, seconds: float, texts: list[str]) -> tuple[float, list[float]]:
    """Requests per second of clients that each wait for their answers, and the response times."""
    times: list[float] = []
    source = cycle(texts)
    start = time.perf_counter()

    async def work() -> None:
        client = Client(port)
        while time.perf_counter() - start < seconds:
            begun = time.perf_counter()
            status = await client.translate(next(source))
            assert status == 200, f"status {status}"
            times.append(time.perf_counter() - begun)
        client.close()

    await asyncio.gather(*(work() for _ in range(num_clients)))
    return len(times) / (time.perf_counter() - start), times


async def soak(port: int, process: psutil.Process, rate: float, seconds: float, texts: list[str]) -> bool:
    """Sends requests at a fixed rate, whether or not earlier ones have been answered; returns whether all went well."""
    counts: Counter[str] = Counter()
    memory: list[int] = []
    idle: list[Client] = []
    open_requests: set[asyncio.Task[None]] = set()
    source = cycle(texts)

    async def send() -> None:
        client = idle.pop() if idle else Client(port)
        try:
            counts[str(await client.translate(next(source)))] += 1
            idle.append(client)
        except (OSError, EOFError) as error:  # asyncio.IncompleteReadError is an EOFError
            counts[type(error).__name__] += 1
            client.close()

    start, num_sent, next_look = time.perf_counter(), 0, 0.0
    while (elapsed := time.perf_counter() - start) < seconds:
        if elapsed >= next_look:
            memory.append(process.memory_info().rss)
            next_look += 1.0
        while num_sent < elapsed * rate and len(open_requests) < MOST_OPEN:
            task = asyncio.create_task(send())
            open_requests.add(task)
            task.add_done_callback(open_requests.discard)
            num_sent += 1
        await asyncio.sleep(0.005)
    await asyncio.gather(*open_requests)
    for client in idle:
        client.close()
    third = max(1, len(memory) // 3)
    middle, last = statistics.median(memory[third : 2 * third] or memory), statistics.median(memory[-third:])
    lost = num_sent - counts["200"] - counts["429"]
    print(f"soak, {seconds:.0f} s at {rate:.0f} requests/s, twice what the clients reached")
    print(f"  translated {counts['200']:,}, refused with 429 {counts['429']:,}, lost {lost:,} {dict(counts)}")
    print(f"  memory {middle / 2**20:.0f} MB in the middle third, {last / 2**20:.0f} MB in the last")
    return lost == 0 and last <= middle * (1 + ALLOWED_GROWTH)


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


async def measure(options: argparse.Namespace, run: Path, texts: list[str]) -> bool:
    with server(run, options.server) as (port, process):
        await closed_loop(port, 4, min(2.0, options.seconds), texts)  # warm-up
        rates = []
        for num_clients in (1, options.clients):
            rate, times = await closed_loop(port, num_clients, options.seconds, texts)
            rates.append(rate)
            print(
                f"{num_clients:>3} clients: {rate:7.1f} requests/s, p50 {1_000 * percentile(times, 0.5):.0f} ms, "
                f"p99 {1_000 * percentile(times, 0.99):.0f} ms"
            )
        print(f"ratio: {rates[1] / rates[0]:.1f}  wanted: {WANTED_RATIO:g} or more")
        is_well = rates[1] >= WANTED_RATIO * rates[0]
        if options.soak:
            is_well &= await soak(port, process, 2 * rates[1], 60 * options.soak, texts)
    return is_well


def limited(maximum: float) -> Callable[[str], float]:
    def convert(text: str) -> float:
        value = float(text)
        if not 0 < value <= maximum:
            raise argparse.ArgumentTypeError(f"{text}: must be above 0 and at most {maximum:g}")
        return value

    return convert


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, metavar="DIR", help="a finished run; without it a tiny one is trained")
    parser.add_argument("--text", type=Path, metavar="FILE", help="sentences to send; default: built-in ones")
    parser.add_argument(
        "--seconds", type=limited(LONGEST_PHASE), default=10.0, help="length of each phase (default: 10)"
    )
    parser.add_argument("--clients", type=int, choices=range(2, 513), default=64, metavar="N", help="default: 64")
    parser.add_argument(
        "--soak", type=limited(LONGEST_SOAK), metavar="MINUTES", help="then send requests at twice the measured rate"
    )
    parser.add_argument("server", nargs="*", metavar="-- OPTION", help="options of the server, such as --engine auto")
    options = parser.parse_args()
    texts = options.text.read_text(encoding="utf-8").splitlines()[:10_000] if options.text else SENTENCES
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or train_tiny_run(Path(folder))
        return 0 if asyncio.run(measure(options, run, [text for text in texts if text.strip()])) else 1


if __name__ == "__main__":
    sys.exit(main())
