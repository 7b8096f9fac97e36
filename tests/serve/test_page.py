"""The page as text: complete, safe, and within its size limit."""

import base64
import json
import re
from typing import Any

import numpy as np
import pytest

from support.fake_models import ByteTokenizer, CopyModel
from support.small_runs import HOSTILE
from translator.decoding.line_translator import LineTranslator
from translator.inspection.inspect import inspect_line
from translator.serve.offline_page import OfflinePage, packed_translation
from translator.serve.page import page


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    tokenizer = ByteTokenizer()
    copier = LineTranslator(CopyModel(tokenizer.target_vocab_size), tokenizer)
    return inspect_line(copier, HOSTILE, need_heads=True, need_beam=True)


def embedded(text: str) -> Any:
    return json.loads(text.split('id="translations">')[1].split("</script>")[0])


def test_nothing_comes_from_elsewhere(seen: dict[str, Any]) -> None:
    for text in (page(), page([seen])):
        addresses = re.findall(r"https?://[^\s\"'`]+", text)
        assert set(addresses) == {"http://www.w3.org/2000/svg"}  # a name, not an address
        assert "innerHTML" not in text
        assert "eval(" not in text
        assert not re.findall(r"<(?:script|img|link)[^>]+src=", text)


def test_controls_that_need_a_server_are_absent_without_one(seen: dict[str, Any]) -> None:
    for name in ("text", "pair", "key"):
        assert f'id="{name}"' in page()
        assert f'id="{name}"' not in page([seen])
    assert 'id="translations"' not in page()
    assert "Content-Security-Policy" not in page()  # the server sends a stricter one
    assert "default-src &#x27;none&#x27;" in page([seen])


def test_hostile_text_stays_text(seen: dict[str, Any]) -> None:
    text = page([seen], title=HOSTILE, note=HOSTILE)
    assert "<script>window.hacked" not in text
    assert embedded(text)[0]["source"] == HOSTILE


def test_packing_keeps_what_is_seen(seen: dict[str, Any]) -> None:
    (packed,) = packed_translation(seen)["segments"]
    (segment,) = seen["segments"]
    weights = np.array(segment["heads"]["weights"])
    bytes_ = np.frombuffer(base64.b64decode(packed["heads"]["packed"]), np.uint8).reshape(weights.shape)
    assert bytes_ / 255 == pytest.approx(weights, abs=0.002)
    for short, node in zip(packed["beam"]["packed"], segment["beam"]["nodes"], strict=True):
        parent, piece, score, normalized, flags = short
        assert (parent, piece, score, normalized) == tuple(
            node[name] for name in ("parent", "piece", "score", "normalized_score")
        )
        assert [bool(flags & 1), bool(flags & 2), bool(flags & 4)] == [node["kept"], node["ended"], node["best"]]
        assert node["step"] == (0 if parent is None else segment["beam"]["nodes"][parent]["step"] + 1)
    assert len(json.dumps(packed)) < len(json.dumps(segment))
    assert "packed" not in seen["segments"][0]["heads"]  # the original is as it was


def test_a_full_page_says_what_it_leaves_out(seen: dict[str, Any]) -> None:
    size = len(json.dumps(packed_translation(seen)))
    small = OfflinePage("Translations", largest=3 * size)
    for number in range(1, 10):
        small.add(number, seen)
    shown = len(small.translations)
    assert shown in (2, 3)
    assert small.is_full
    assert f"Only the first {shown} of 9 lines are shown here" in small.to_html()
    assert [line["line"] for line in embedded(small.to_html())] == list(range(1, shown + 1))
    whole = OfflinePage("Translations")
    whole.add(1, seen)
    assert whole.note == ""
    assert 'id="note"' not in whole.to_html()
