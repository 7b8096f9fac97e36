"""/spec is accurate: it describes every route and no other, and the server's answers match it."""

from typing import Any

import pytest

from support.servers import RunningServer, copier, running
from translator.serve.own_interface import NAMES, OPTIONS

TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
TEXT = {"q": "a dog\nand a cat", "source": "auto", "target": "de"}
# Every response that can be had without a broken or busy server, which other tests are about.
CASES: list[tuple[str, str, Any, int]] = [
    ("post", "/translate", TEXT, 200),
    ("post", "/translate", TEXT | {"q": ["a", "b"], "alternatives": 2}, 200),
    ("post", "/translate", {}, 400),
    ("post", "/detect", {"q": "a dog"}, 200),
    ("post", "/detect", {}, 400),
    ("get", "/languages", None, 200),
    ("get", "/frontend/settings", None, 200),
    ("post", "/v2/translate", {"text": ["a"], "target_lang": "DE", "show_billed_characters": True}, 200),
    ("post", "/v2/translate", {}, 400),
    ("get", "/v2/languages", None, 200),
    ("get", "/v2/languages?type=target", None, 200),
    ("get", "/v2/languages?type=other", None, 400),
    ("get", "/v2/usage", None, 200),
    (
        "post",
        "/v1/translate",
        {"text": "One. Two.", "nbest": 2, "details": {"heads": True, "heads_rank": 1, "beam": True}},
        200,
    ),
    ("post", "/v1/translate", {"text": "One. Two.", "stream": True}, 200),
    ("post", "/v1/translate", {}, 400),
    ("get", "/", None, 200),
    ("get", "/health", None, 200),
    ("get", "/metrics", None, 200),
    ("get", "/spec", None, 200),
]


@pytest.fixture(scope="module")
def spec(server: RunningServer) -> dict[str, Any]:
    found: dict[str, Any] = server.get("/spec").json
    return found


def conforms(value: Any, schema: dict[str, Any], spec: dict[str, Any]) -> bool:
    """As JSON Schema defines it, for the keywords used in the file; properties that are not listed are not allowed."""
    if "$ref" in schema:
        return conforms(value, spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]], spec)
    if "oneOf" in schema:
        return any(conforms(value, one, spec) for one in schema["oneOf"])
    if not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if schema["type"] == "array":
        return all(conforms(item, schema["items"], spec) for item in value)
    properties = schema.get("properties")
    if schema["type"] == "object" and properties is not None:
        is_complete = set(schema["required"]) <= set(value) <= set(properties)
        return is_complete and all(conforms(item, properties[name], spec) for name, item in value.items())
    return True


def test_every_route_is_described_and_no_other(spec: dict[str, Any], server: RunningServer) -> None:
    described = {(path, method) for path, methods in spec["paths"].items() for method in methods}
    for path, method in described:
        other = "get" if method == "post" else "post"
        assert server.call(other.upper(), path).status == 405, path
        assert server.call(method.upper(), path).status not in (404, 405), path
    assert described == {(path.partition("?")[0], method) for method, path, _, _ in CASES}
    from translator.serve import deepl, libretranslate, own_interface, site

    parts: Any = [libretranslate.LibreTranslate, deepl.DeepL, own_interface.OwnInterface, site.Site]
    routed = {route.path for part in parts for route in part(server.service).routes}
    assert routed == set(spec["paths"])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_answers_are_as_described(spec: dict[str, Any], server: RunningServer, case: tuple[str, str, Any, int]) -> None:
    method, path, body, status = case
    answer = server.call(method.upper(), path, body)
    assert answer.status == status, answer.body
    described = spec["paths"][path.partition("?")[0]][method]
    kind = answer.headers["content-type"].partition(";")[0]
    schema = described["responses"][str(status)]["content"][kind]["schema"]
    if kind == "application/json":
        assert conforms(answer.json, schema, spec), answer.json
    if status == 200 and isinstance(body, dict):
        asked = described["requestBody"]["content"]["application/json"]["schema"]
        assert conforms(body, asked, spec), "the request of this test is as described too"


def test_the_other_statuses_have_the_form_of_errors(spec: dict[str, Any]) -> None:
    with running([copier()], keys=["correct horse"], max_body=1_000) as server:
        for path in ("/translate", "/detect", "/v1/translate", "/v2/translate"):
            for body, status in (({}, 403), ({"q": "a" * 2_000}, 413)):
                answer = server.post(path, body)
                content = spec["paths"][path]["post"]["responses"][str(status)]["content"]
                assert answer.status == status
                assert conforms(answer.json, content["application/json"]["schema"], spec)


def test_the_names_of_parameters_and_options_are_all_there(spec: dict[str, Any]) -> None:
    described = spec["components"]["schemas"]["DetailedRequest"]["properties"]
    assert set(described) == set(NAMES)
    assert set(described["options"]["properties"]) == set(OPTIONS)
