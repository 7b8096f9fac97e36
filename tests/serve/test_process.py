"""`translate-serve` as a process: its limits, what it says, and how signals end it."""

import http.client
import json
import re
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.servers import wait_until
from support.warm_python import Program

# A translation begins by making the file `begun` and ends once there is a file `go`, or once it is abandoned.
HELD_UP = """
import sys, time
from pathlib import Path
from translator.errors import Interrupted
from translator.serve import torch_model

translate = torch_model.TorchModel.translate

def held_up(*arguments, **options):
    Path("begun").touch()
    while not Path("go").exists():
        if options["interrupted"]():
            raise Interrupted
        time.sleep(0.01)
    return translate(*arguments, **options)

torch_model.TorchModel.translate = held_up
from translator.serve.command import main
sys.exit(main())
"""
STREAM = {"text": "A man reads. A dog runs.", "source": "en", "target": "de", "stream": True}


@contextmanager
def started(run: Path, folder: Path, *options: str) -> Iterator[tuple[Program, str]]:
    """The running server and its address; text is translated once there is a file `go` in the folder."""
    program = Program(HELD_UP, "--model", str(run), "--port", "0", "--threads", "1", *options, cwd=folder)
    try:
        wait_until(lambda: "Listening on" in program.messages() or program.returncode is not None, 120)
        found = re.search(r"Listening on (http://127\.0\.0\.1:\d+); stop with Ctrl-C\.\n", program.messages())
        assert found, program.messages()
        yield program, found[1]
    finally:
        program.kill()


def assert_discreet(messages: str, url: str) -> None:
    """They have neither texts nor addresses of clients, nor where in the program something went wrong."""
    others = messages.replace(url, "its own address")
    for revealing in ("A man", "127.0.0.1", "/translate", "Traceback"):
        assert revealing not in others


def post(url: str) -> tuple[int, str]:
    body = json.dumps({"q": "A man reads.", "source": "en", "target": "de"}).encode()
    request = urllib.request.Request(f"{url}/translate", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return response.status, json.load(response)["translatedText"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_answers_what_was_accepted(small_run: Path, tmp_path: Path, number: int) -> None:
    with started(small_run, tmp_path) as (program, url), ThreadPoolExecutor(1) as clients:
        accepted = clients.submit(post, url)
        wait_until((tmp_path / "begun").exists)
        program.send_signal(number)
        port = int(url.rpartition(":")[2])
        wait_until(lambda: refuses(port))
        (tmp_path / "go").touch()
        assert accepted.result()[0] == 200
        assert program.wait(60) == 0
        assert_discreet(program.messages(), url)


@pytest.mark.slow
def test_the_first_signal_lets_a_stream_end(small_run: Path, tmp_path: Path) -> None:
    with started(small_run, tmp_path) as (program, url):
        port = int(url.rpartition(":")[2])
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        client.request("POST", "/v1/translate", json.dumps(STREAM), {"Content-Type": "application/json"})
        answer = client.getresponse()
        assert answer.readline() == b"event: start\n"  # it has begun
        wait_until((tmp_path / "begun").exists)
        program.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses(port))
        (tmp_path / "go").touch()
        rest = answer.read().decode()
        names = [line.removeprefix("event: ") for line in rest.split("\n") if line.startswith("event: ")]
        assert names == ["sentence", "sentence", "end"]
        assert rest.endswith("\n\n")
        assert program.wait(60) == 0
        assert "Traceback" not in program.messages()


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.slow
def test_what_takes_longer_than_the_drain_is_abandoned(small_run: Path, tmp_path: Path) -> None:
    with started(small_run, tmp_path, "--drain", "1") as (program, url), ThreadPoolExecutor(1) as clients:
        lost = clients.submit(post, url)
        wait_until((tmp_path / "begun").exists)
        program.send_signal(signal.SIGTERM)
        assert program.wait(20) == 0  # the default is to wait for 30 s
        with pytest.raises(urllib.error.HTTPError) as refused:
            lost.result()
        assert (refused.value.code, json.load(refused.value)) == (503, {"error": "the server is shutting down"})
        assert "graceful shutdown exceeded" in program.messages()
        assert_discreet(program.messages(), url)


@pytest.mark.slow
def test_the_second_signal_ends_at_once(small_run: Path, tmp_path: Path) -> None:
    with started(small_run, tmp_path) as (program, url), ThreadPoolExecutor(1) as clients:
        lost = clients.submit(post, url)
        wait_until((tmp_path / "begun").exists)
        program.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses(int(url.rpartition(":")[2])))
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 128 + signal.SIGTERM
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            lost.result()


@pytest.mark.slow
def test_the_limits_are_those_of_the_command_line(small_run: Path, tmp_path: Path) -> None:
    options = ["--max-characters", "8", "--max-texts", "2", "--max-alternatives", "1", "--max-beam", "7"]
    widest = "must be at most 7 on this server"
    (tmp_path / "go").touch()
    with started(small_run, tmp_path, *options) as (program, url):
        for path, body, refusal in (
            ("translate", {"q": "12345678"}, None),
            ("translate", {"q": "123456789"}, "9 characters are more than the 8 allowed in a request"),
            ("translate", {"q": ["a", "b"]}, None),
            ("translate", {"q": ["a", "b", "c"]}, "3 texts are more than the 2 allowed in a request"),
            ("translate", {"q": "a", "alternatives": 1}, None),
            ("translate", {"q": "a", "alternatives": 2}, "alternatives: must be a whole number from 0 to 1"),
            ("v1/translate", {"text": "a", "nbest": 3}, "nbest: must be a whole number from 1 to 2"),
            ("v1/translate", {"text": "a", "options": {"beam_size": 7}}, None),
            ("v1/translate", {"text": "a", "options": {"beam_size": 8}}, f"options.beam_size: {widest}"),
            ("v1/translate", {"text": "a", "options": {"mbr": 8}}, f"options.mbr: {widest}"),
        ):
            status, answer = ask(f"{url}/{path}", {"source": "en", "target": "de"} | body)
            assert (status, answer.get("error")) == ((400, refusal) if refusal else (200, None)), body
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 0


def ask(url: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)
