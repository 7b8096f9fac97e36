"""Formulas become MathML, and mistakes in them are found when the page is made."""

import xml.etree.ElementTree as ElementTree

import pytest

from translator.atlas.formulas import formula, inline


def parsed(source: str) -> ElementTree.Element:
    return ElementTree.fromstring(inline(source, "spoken"))


def shown(element: ElementTree.Element) -> str:
    """The structure in one line: names of elements, and texts."""
    inner = "".join(shown(child) for child in element) or (element.text or "")
    return inner if element.tag in ("mi", "mn", "mo", "mtext", "mrow", "math") else f"{element.tag}({inner})"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a_i + 12.5", "msub(ai)+12.5"),
        ("x_i^2", "msubsup(xi2)"),
        ("x^{2i/d}", "msup(x2i/d)"),
        (r"\sum_{i}^n k_i", "munderover(∑in)msub(ki)"),
        (r"\frac{q^\top k}{\sqrt{d}}", "mfrac(msup(q⊤)kmsqrt(d))"),
        (r"\softmax_i ( -a < b )", "msub(softmaxi)(−a<b)"),
        (r"\text{ and  so}", "\u00a0and\u00a0\u00a0so"),
    ],
)
def test_structure(source: str, expected: str) -> None:
    assert shown(parsed(source)) == expected


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (r"\frac{a}", "ends too early"),
        ("{a", "} is missing"),
        (r"\nonsense", r"\\nonsense is not known"),
        ("a_", "ends"),
    ],
)
def test_mistakes(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inline(source, "spoken")


def test_a_formula_can_be_read_aloud() -> None:
    element = ElementTree.fromstring(formula("a = b", 'a equals "b"'))
    (math,) = element
    assert (math.get("aria-label"), math.get("display"), math.get("role")) == ('a equals "b"', "block", "math")
