"""Limits of the server: sizes, times, keys, origins, and clients that disconnect."""

import http.client
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.servers import RunningServer, copier, running, wait_until
from translator.serve import application, service, site

BODY = {"q": "a dog", "source": "en", "target": "de"}


class SlowCopier:
    """Copies once the gate is open; polls whether anybody is still waiting, as searches do."""

    def __init__(self) -> None:
        self.model = copier()
        self.gate = threading.Event()
        self.num_running = 0
        original = self.model.translate

        def translate(*arguments: Any, interrupted: Callable[[], bool], **options: Any) -> Any:
            self.num_running += 1
            try:
                while not self.gate.wait(0.005) and not interrupted():
                    pass
                return original(*arguments, interrupted=interrupted, **options)
            finally:
                self.num_running -= 1

        self.model.translate = translate  # type: ignore[method-assign]


@pytest.fixture
def slow() -> Iterator[SlowCopier]:
    model = SlowCopier()
    yield model
    model.gate.set()


def test_a_full_queue_is_refused_with_a_time_to_try_again(slow: SlowCopier) -> None:
    with running([slow.model], max_queue=2) as server, ThreadPoolExecutor(3) as clients:
        first = clients.submit(server.post, "/translate", BODY)
        wait_until(lambda: slow.num_running == 1)
        waiting = [clients.submit(server.post, "/translate", BODY) for _ in range(2)]
        wait_until(lambda: server.metric("queue_length") == 2)
        refused = server.post("/translate", BODY)
        assert (refused.status, refused.json) == (429, {"error": "too many requests are waiting; try again later"})
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        streamed = server.post("/v1/translate", {"text": "a", "stream": True})
        assert streamed.status == 429
        slow.gate.set()
        assert [answer.result().status for answer in (first, *waiting)] == [200, 200, 200]


def test_a_translation_that_takes_too_long_is_abandoned(slow: SlowCopier, caplog: pytest.LogCaptureFixture) -> None:
    with running([slow.model], timeout=0.2) as server:
        answer = server.post("/translate", BODY)
        assert answer.status == 503
        assert answer.json == {"error": "the translation took longer than the 0.2 s allowed"}
        wait_until(lambda: slow.num_running == 0)
        streamed = server.post("/v1/translate", {"text": "a", "stream": True})
        assert b"event: error\ndata: " in streamed.body
        slow.gate.set()
        server.service.options.timeout = 60.0
        assert server.post("/translate", BODY).status == 200
    assert caplog.records == [], "nothing has failed"


def test_a_body_that_does_not_arrive_times_out() -> None:
    with running([copier()], timeout=0.2) as server, socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{")
        assert client.recv(1_000).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
def test_a_dropped_connection_cancels_its_work(slow: SlowCopier, path: str) -> None:
    with running([slow.model]) as server:
        for is_streamed in (False, True) if path == "/v1/translate" else (False,):
            body = json.dumps({"text": "a", "stream": is_streamed} if path == "/v1/translate" else BODY)
            connections = [http.client.HTTPConnection("127.0.0.1", server.port) for _ in range(2)]
            for number, connection in enumerate(connections):
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                wait_until(lambda number=number: slow.num_running == 1 and server.metric("queue_length") == number)
            for connection in connections:
                connection.close()
            wait_until(lambda: slow.num_running == 0 and server.metric("queue_length") == 0)
            wait_until(lambda number=2 + 2 * is_streamed: server.metric("cancelled_total") == number)
        assert not slow.gate.is_set(), "nothing was finished"
        slow.gate.set()
        assert server.post("/translate", BODY).status == 200


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_large_body_is_refused(is_chunked: bool) -> None:
    with running([copier()], max_body=2_000) as server:
        body = json.dumps(BODY | {"q": "a" * 3_000}).encode()
        chunks: Any = iter([body[:1_000], body[1_000:]]) if is_chunked else body
        answer = server.post("/translate", chunks, {"Content-Type": "application/json"})
        assert answer.status == 413
        assert answer.json == {"error": "the body is larger than the 2,000 bytes allowed; send the text in parts"}


def test_keys_are_needed_where_there_are_some() -> None:
    with running([copier()], keys=["correct horse", "battery staple"]) as server:
        for path, body in (("/translate", BODY), ("/detect", {"q": "a"}), ("/v1/translate", {"text": "a"})):
            refused = server.post(path, body)
            assert (refused.status, refused.json) == (403, {"error": "this server needs an API key; give a valid one"})
            assert server.post(path, body | {"api_key": "correct"}).status == 403
            assert server.post(path, body | {"api_key": "battery staple"}).status == 200
            assert server.post(path, body, {"Authorization": "Bearer correct horse"}).status == 200
        assert server.get("/languages").status == server.get("/health").status == server.get("/").status == 200
        assert server.get("/frontend/settings").json["keyRequired"] is True


def test_other_origins_are_allowed_by_name_only() -> None:
    origin = {"Origin": "https://a.example"}
    with running([copier()]) as server:
        assert "access-control-allow-origin" not in server.call("GET", "/languages", headers=origin).headers
    with running([copier()], allow_origin=["https://a.example"]) as server:
        allowed = server.post("/translate", BODY, origin)
        assert allowed.headers["access-control-allow-origin"] == "https://a.example"
        other = server.post("/translate", BODY, {"Origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


def test_unknown_paths_and_methods(server: RunningServer) -> None:
    answer = server.get("/nothing/here")
    assert (answer.status, answer.json) == (404, {"error": "no such path; see /spec"})
    answer = server.get("/translate")
    assert (answer.status, answer.json) == (405, {"error": "method not allowed for this path; see /spec"})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers, "which program it is concerns nobody"
    assert set(server.get("/v2/nothing").json) == {"error", "message"}


def test_the_page_may_load_nothing_from_elsewhere(server: RunningServer) -> None:
    page = server.get("/")
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy == site.content_security_policy(page.body.decode())
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_policy_names_the_scripts_of_its_page_by_their_hashes() -> None:
    policy = site.content_security_policy('<script>alert(1)</script><script type="application/json">{}</script>')
    # printf 'alert(1)' | openssl dgst -sha256 -binary | base64
    assert "script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';" in policy
    assert "style-src 'none';" in policy


def test_metrics_do_not_reveal_what_was_asked(server: RunningServer) -> None:
    def count(route: str, status: int) -> float:
        labels = {"route": route, "status": str(status)}
        return server.service.metrics.registry.get_sample_value("translator_requests_total", labels) or 0.0

    before = {case: count(*case) for case in (("/translate", 200), ("/translate", 400), ("other", 404))}
    server.post("/translate", BODY | {"q": "confidential"})
    server.post("/translate", {})
    server.get("/some/secret-path")
    server.get("/some/other-path?with=secret")
    wait_until(lambda: count("other", 404) == before["other", 404] + 2)
    assert count("/translate", 200) == before["/translate", 200] + 1
    assert count("/translate", 400) == before["/translate", 400] + 1
    text = server.get("/metrics").body.decode()
    assert "secret" not in text
    assert "confidential" not in text
    for name in (
        "queue_length",
        "batch_lines_bucket",
        "batch_requests_bucket",
        "request_seconds_bucket",
        "pieces_total",
    ):
        assert f"translator_{name}" in text


def test_a_fault_is_answered_and_logged_without_the_text(caplog: pytest.LogCaptureFixture) -> None:
    model = copier()

    def fail(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError("cannot translate: confidential")

    model.translate = fail  # type: ignore[method-assign]
    with caplog.at_level(logging.DEBUG), running([model]) as server:
        answer = server.post("/translate", BODY | {"q": "confidential"})
        assert (answer.status, answer.json) == (500, {"error": "the translation failed because of an internal error"})
        assert (
            server.service.metrics.registry.get_sample_value("translator_errors_total", {"kind": "RuntimeError"}) == 1
        )
    assert "RuntimeError at test_limits.py" in caplog.text
    assert "confidential" not in caplog.text


def test_a_fault_outside_the_queue_is_answered_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running([copier()]) as server:
        monkeypatch.setattr(service.Service, "check_texts", None)
        answer = server.post("/translate", BODY)
        assert (answer.status, answer.json) == (500, {"error": "the request failed because of an internal error"})
        assert answer.headers["x-frame-options"] == dict(application.SAFETY)[b"x-frame-options"].decode()
    assert "TypeError at libretranslate.py" in caplog.text or "TypeError at service.py" in caplog.text


def test_health_says_when_the_server_is_shutting_down() -> None:
    with running([copier()]) as server:
        assert server.get("/health").json == {"status": "ok"}
        server.service.batcher.close(10)
        assert server.get("/health").status == 503
