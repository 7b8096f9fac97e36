"""The parameters of a request: JSON, form-encoded or multipart, with a limit on the size and checked types."""

import json
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from translator.serve.refusals import Refusal

MOST_FIELDS = 10_000
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


async def read_body(request: Request, limit: int) -> bytes:
    """The body; one that is too large is refused, with or without a Content-Length."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise Refusal(413, f"the body is larger than the {limit:,} bytes allowed; send the text in parts")
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise Refusal(413, f"the body is larger than the {limit:,} bytes allowed; send the text in parts")
        chunks.append(chunk)
    return b"".join(chunks)


class Parameters:
    """Named values whose types are checked when they are asked for."""

    def __init__(self, values: dict[str, Any], *, is_form: bool = False) -> None:
        self.values, self.is_form = values, is_form

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def texts(self, name: str, remedy: str) -> tuple[list[str], bool]:
        """A text or a list of texts, and whether it was a list."""
        value = self.values.get(name)
        if value is None:
            raise Refusal(400, f"{name}: missing; {remedy}")
        is_list = isinstance(value, list)
        texts = value if is_list else [value]
        if not all(isinstance(text, str) for text in texts):
            raise Refusal(400, f"{name}: must be a text or a list of texts")
        return [_unicode(name, text) for text in texts], is_list

    def text(self, name: str, default: str | None = None, remedy: str = "give one") -> str:
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise Refusal(400, f"{name}: missing; {remedy}")
            return default
        if not isinstance(value, str):
            raise Refusal(400, f"{name}: must be a text")
        return _unicode(name, value)

    def number(self, name: str, default: int, maximum: int, minimum: int = 0) -> int:
        value = self.values.get(name)
        if value is None or value == "":
            return default
        if isinstance(value, str) and self.is_form and value.isascii() and value.isdigit() and len(value) < 10:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise Refusal(400, f"{name}: must be a whole number from {minimum} to {maximum}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.values.get(name)
        if value is None:
            return default
        if isinstance(value, str) and self.is_form:
            value = True if value.lower() in _TRUE else False if value.lower() in _FALSE else value
        if not isinstance(value, bool):
            raise Refusal(400, f"{name}: must be true or false")
        return value

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """One of the choices, of which the first is the default; an empty one can only be left out."""
        value = self.values.get(name)
        if value in (None, ""):
            return choices[0]
        if value not in choices:
            named = " or ".join(filter(None, choices))
            raise Refusal(400, f"{name}: must be {named}" + (", or left out" if "" in choices else ""))
        return str(value)

    def group(self, name: str) -> dict[str, Any]:
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise Refusal(400, f"{name}: must be an object")
        return value


def _unicode(name: str, text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Refusal(400, f"{name}: is not valid Unicode (it contains a lone surrogate)")
    return text


async def read_parameters(request: Request, limit: int) -> Parameters:
    """The parameters in the query and the body of a request."""
    query = _grouped(request.query_params.multi_items())
    try:
        body = await read_body(request, limit)
    except ClientDisconnect:
        raise Refusal(499, "the client has disconnected") from None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return Parameters(query | await _multipart(request.headers, body), is_form=True)
    if kind == "application/x-www-form-urlencoded" or not body:
        return Parameters(query | _form(body), is_form=True)
    if kind != "application/json" and not kind.endswith("+json"):
        raise Refusal(400, f"Content-Type: {kind[:50] or 'missing'}; send application/json or a form")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not valid JSON") from None
    if not isinstance(values, dict):
        raise Refusal(400, "the body must be a JSON object")
    return Parameters(query | values)


def _form(body: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Refusal(400, "the body is not a valid form in UTF-8") from None
    return _grouped(pairs)


async def _multipart(headers: Headers, body: bytes) -> dict[str, Any]:
    async def stream() -> Any:
        yield body

    parser = MultiPartParser(headers, stream(), max_files=0, max_fields=MOST_FIELDS, max_part_size=len(body))
    try:
        form = await parser.parse()
    except (MultiPartException, ValueError, KeyError):
        raise Refusal(400, "the body is not a valid form without files") from None
    return _grouped(form.multi_items())


def _grouped(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A parameter given several times is a list."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            earlier = values[name]
            values[name] = [*(earlier if isinstance(earlier, list) else [earlier]), value]
        else:
            values[name] = value
    return values
