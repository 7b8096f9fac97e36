import base64
import json
from html.parser import HTMLParser

import pytest

from support.small_runs import HOSTILE
from translator.report.charts import asset, attention_maps, bar_chart, chart, heat_map, line_chart, number_text
from translator.report.html import Markup, fold, join, json_script, table, tag


class Reader(HTMLParser):
    """The elements and the texts of a page, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[dict[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_texts_and_attributes_are_escaped() -> None:
    read = Reader(tag("p", HOSTILE, ["nested ", tag("b", "<"), None, 7], title=HOSTILE, data_kind="x", hidden=True))
    assert read.tags == ["p", "b"]
    assert "".join(read.texts) == f"{HOSTILE}nested <7"
    assert read.attributes[0] == {"title": HOSTILE, "data-kind": "x", "hidden": None}
    assert join(Markup("<i>"), "<i>") == "<i>&lt;i&gt;"


def test_data_for_scripts_cannot_end_the_element() -> None:
    written = json_script({"text": HOSTILE + "\u2028"}, id="d")
    assert Reader(written).tags == ["script"]
    body = written.partition(">")[2].removesuffix("</script>")
    assert "<" not in body
    assert json.loads(body) == {"text": HOSTILE + "\u2028"}


def test_numbers_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        json_script({"x": float("nan")})


def test_a_table_names_its_rows_and_columns() -> None:
    read = Reader(fold("more", table(("name", "count"), [("a", "1,000"), ("b", "–")])))
    assert read.tags[:2] == ["details", "summary"]
    assert read.tags.count("th") == 4
    assert {"scope": "row"} in read.attributes
    assert {"class": "number"} in read.attributes


def spec_of(markup: str) -> dict[str, object]:
    text = markup.partition('type="application/json">')[2].partition("</script>")[0]
    result: dict[str, object] = json.loads(text)
    return result


def test_charts_carry_their_numbers_and_a_table_of_them() -> None:
    line = line_chart("Loss", {"a": [(1, 2.0), (2, 0.00123)]}, x="update", y="loss", digits=3)
    assert spec_of(line)["series"] == [{"name": "a", "points": [[1, 2.0], [2, 0.00123]]}]
    assert "0.00123" in Reader(line).texts
    bars = bar_chart("F1", ["x", "y"], {"A": [0.5, None]}, x="class", y="F1", percent=True, notes=["n", "m"])
    assert [text for text in Reader(bars).texts if text in ("50.0 %", "–", "n", "m")] == ["50.0 %", "n", "–", "m"]
    grid = heat_map("E", ["layer 1"], ["h1", "h2"], [[1.25, 2.5]])
    assert {"1.25", "2.50"} <= set(Reader(grid).texts)
    assert "details" not in Reader(chart("line", "t", {})).tags
    assert number_text(1234.5, 1) == "1,234.5"


def test_attention_is_packed_into_bytes() -> None:
    weights = [[[[0.0, 1.0], [0.5, 0.5]]]]
    spec = spec_of(attention_maps("t", [{"line": 3, "source": ["a", "b"], "target": ["c", "d"], "weights": weights}]))
    (one,) = spec["maps"]  # type: ignore[misc]
    assert list(base64.b64decode(one["packed"])) == [0, 255, 128, 128]
    assert (one["layers"], one["heads"], one["line"]) == (1, 1, 3)


@pytest.mark.parametrize("name", ["charts.js", "sentences.js", "theme.js", "style.css"])
def test_assets_need_nothing_from_elsewhere(name: str) -> None:
    text = asset(name)
    assert "</script" not in text
    assert "</style" not in text
    allowed = text.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    assert "http" not in allowed
    assert "innerHTML" not in text
    assert "@import" not in text
