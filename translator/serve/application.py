"""The ASGI application: routes, the format of errors, security headers and request metrics."""

import asyncio
import logging
import time
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from translator.serve.batcher import describe
from translator.serve.deepl import DeepL
from translator.serve.libretranslate import LibreTranslate
from translator.serve.metrics import OTHER, Metrics
from translator.serve.own_interface import OwnInterface
from translator.serve.refusals import Refusal
from translator.serve.service import Service
from translator.serve.site import Site

logger = logging.getLogger(__name__)

SAFETY = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
]
PHRASES = {404: "no such path; see /spec", 405: "method not allowed for this path; see /spec"}


def application(service: Service) -> ASGIApp:
    parts = (LibreTranslate(service), DeepL(service), OwnInterface(service), Site(service))
    routes = [route for part in parts for route in part.routes]
    handlers: dict[Any, Any] = {Refusal: _refused, HTTPException: _http_error, Exception: _failed}
    app: ASGIApp = Starlette(routes=routes, exception_handlers=handlers)
    if service.options.allow_origin:
        app = CORSMiddleware(
            app,
            allow_origins=service.options.allow_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type", "Authorization"],
        )
    return Instruments(app, service.metrics, {route.path for route in routes})


class Instruments:
    """Counts and times requests by route, adds the headers, and logs failures without the content of the request."""

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: set[str]) -> None:
        self.app, self.metrics, self.paths = app, metrics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status, has_begun = time.perf_counter(), 500, False

        async def send_safely(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
                message = {**message, "headers": [*message.get("headers", []), *SAFETY]}
            await send(message)

        try:
            await self.app(scope, receive, send_safely)
        except Exception as error:  # `_failed` has already answered it
            logger.error("a request failed: %s", describe(error))
            self.metrics.errors.labels(type(error).__name__).inc()
        except asyncio.CancelledError:  # the server ends and waits no longer; raised on, it would be logged as a fault
            if not has_begun:
                answer = await _refused(Request(scope), Refusal(503, "the server is shutting down"))
                await answer(scope, receive, send_safely)
        finally:
            route = scope["path"] if scope["path"] in self.paths else OTHER
            self.metrics.answered(route, status, time.perf_counter() - started)


def _error(request: Request, status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """LibreTranslate's error format; DeepL's libraries look for `message`."""
    content = {"error": message}
    if request.url.path.startswith("/v2/"):
        content["message"] = message
    return JSONResponse(content, status_code=status, headers=headers)


async def _refused(request: Request, refusal: Refusal) -> Response:
    return _error(request, refusal.status, refusal.message, refusal.headers)


async def _http_error(request: Request, error: HTTPException) -> Response:
    headers = dict(error.headers) if error.headers else None
    return _error(request, error.status_code, PHRASES.get(error.status_code, str(error.detail)), headers)


async def _failed(request: Request, error: Exception) -> Response:
    return _error(request, 500, "the request failed because of an internal error")
