"""The HTTP server in a thread of this process, on a free loopback port, and a plain client for it."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from support.fake_models import ByteTokenizer, CopyModel
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.schema.serve import ServerOptions
from translator.serve.application import application
from translator.serve.keys import ApiKeys
from translator.serve.models import Catalogue, Model
from translator.serve.running import Server, address, configuration, listen
from translator.serve.service import Service
from translator.serve.torch_model import TorchModel


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RunningServer:
    def __init__(self, service: Service, port: int) -> None:
        self.service, self.port = service, port
        self.url = f"http://127.0.0.1:{port}"

    def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Sends a request; a body that is a dictionary becomes JSON, and an iterable of bytes a chunked body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = dict(headers or {})
        if isinstance(body, dict):
            body, headers = json.dumps(body).encode(), {"Content-Type": "application/json"} | headers
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, received, response.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        return self.call("POST", path, body, headers)

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def metric(self, name: str) -> float:
        return self.service.metrics.registry.get_sample_value(f"translator_{name}") or 0.0


def copier(
    source: str = "en", target: str = "de", *, search: SearchOptions | None = None, **options: Any
) -> TorchModel:
    """A model that writes its source in capitals."""
    tokenizer = ByteTokenizer()
    search = search or SearchOptions(beam_size=2)
    translator = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer, options=search, **options)
    return TorchModel(translator, source, target, "copier")


@contextmanager
def running(
    models: Sequence[Model], *, keys: Sequence[str] = (), split_sentences: bool = False, **options: Any
) -> Iterator[RunningServer]:
    service = Service(
        Catalogue(models), ServerOptions(port=0, **options), keys=ApiKeys(list(keys)), split_sentences=split_sentences
    )
    listener = listen("127.0.0.1", 0)
    port = int(address(listener).rpartition(":")[2])
    server = Server(configuration(application(service), service))
    thread = threading.Thread(target=server.run, args=([listener],))
    service.batcher.start()
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield RunningServer(service, port)
    finally:
        server.should_exit = True
        server.force_exit = True
        service.batcher.close(10)
        thread.join(30)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)
