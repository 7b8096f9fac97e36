"""A server with nothing but what the page asks for, which can be told to be slow, busy or gone."""

import base64
import hashlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from translator.decoding.line_translator import LineTranslator
from translator.inspection.inspect import inspect_line
from translator.serve.page import page

NAMES = {"en": "English", "de": "German", "he": "Hebrew", "zh": "Chinese"}


class PageServer:
    """Answers /v1/translate with `inspect_line`; `translators` are by pairs of languages."""

    def __init__(self, translators: Mapping[tuple[str, str], LineTranslator], *, key: str = "") -> None:
        self.translators, self.key = dict(translators), key
        self.asked: list[dict[str, Any]] = []
        self.delays: dict[str, float] = {}  # seconds, by text
        self.refusals: list[tuple[int, str]] = []  # statuses and reasons of the next answers
        self.address = ""

    def translate(self, request: dict[str, Any], authorization: str) -> Response:
        self.asked.append(request)
        if self.refusals:
            status, reason = self.refusals.pop(0)
            return JSONResponse({"error": reason}, status, headers={"Retry-After": "1"})
        if self.key and authorization != f"Bearer {self.key}":
            return JSONResponse({"error": "this server needs an API key"}, 403)
        time.sleep(self.delays.get(request["text"], 0))
        translator = self.translators[request["source"], request["target"]]
        lines = request["text"].split("\n")
        prefixes = [request.get("prefix", ""), *[""] * (len(lines) - 1)]
        details = [
            inspect_line(
                translator,
                line,
                prefix=prefix,
                num_hypotheses=request.get("nbest"),
                num_runners_up=request["details"]["runners_up"],
                need_heads=request["details"]["heads"],
                need_beam=request["details"]["beam"],
            )
            for line, prefix in zip(lines, prefixes, strict=True)
        ]
        return JSONResponse({"sentences": [{"details": one, "text": one["text"]} for one in details]})

    def application(self) -> Starlette:
        sources = dict.fromkeys(source for pair in self.translators for source in pair)
        languages = [
            {"code": code, "name": NAMES[code], "targets": [t for s, t in self.translators if s == code]}
            for code in sources
        ]
        first = next(iter(self.translators))
        settings = {
            "keyRequired": bool(self.key),
            "language": {side: {"code": code} for side, code in zip(("source", "target"), first, strict=True)},
        }

        async def translate(request: Request) -> Response:
            from starlette.concurrency import run_in_threadpool

            return await run_in_threadpool(
                self.translate, await request.json(), request.headers.get("authorization", "")
            )

        async def index(request: Request) -> Response:
            text = page()
            return HTMLResponse(text, headers={"Content-Security-Policy": policy(text)})

        async def answer_languages(request: Request) -> Response:
            return JSONResponse(languages)

        async def answer_settings(request: Request) -> Response:
            return JSONResponse(settings)

        return Starlette(
            routes=[
                Route("/", index),
                Route("/v1/translate", translate, methods=["POST"]),
                Route("/languages", answer_languages),
                Route("/frontend/settings", answer_settings),
            ]
        )

    @contextmanager
    def running(self, port: int = 0) -> Iterator[str]:
        """The address, while the server runs in a thread."""
        server = uvicorn.Server(uvicorn.Config(self.application(), port=port, log_level="error"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.should_exit = True
            thread.join()


def policy(text: str) -> str:
    """The strictest policy under which a page can work: its own scripts and styles by their hashes."""
    hashes = {
        name: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'"
            for part in re.findall(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
        )
        for name in ("script", "style")
    }
    return (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; connect-src 'self'; "
        "img-src data:"
    )
