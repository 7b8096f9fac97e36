r"""Formulas as MathML, which browsers show without external fonts or scripts.

They are written in a small part of TeX: letters, numbers and signs, _ and ^, braces, \frac{}{}, \sqrt{}, \text{}, and
the names in the tables below.
"""

import re
from collections.abc import Iterator

from translator.report.html import Markup, join, tag

LETTERS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "theta": "θ",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "sigma": "σ",
    "tau": "τ",
    "omega": "ω",
    "Delta": "Δ",
    "ell": "ℓ",
    "infty": "∞",
    "partial": "∂",
    "top": "⊤",
}
FUNCTIONS = ("softmax", "score", "exp", "tanh", "sin", "cos", "log", "max", "min", "Attention", "MultiHead", "Concat")
SIGNS = {
    "cdot": "·",
    "times": "×",
    "le": "≤",
    "ge": "≥",
    "approx": "≈",
    "to": "→",
    "in": "∈",
    "dots": "…",
    "propto": "∝",
    "pm": "±",
    "quad": "\u2003",
    "sum": "∑",
    "odot": "⊙",
    "neq": "≠",
    "ll": "≪",
}
LARGE = ("sum",)  # whose limits stand below and above
TOKEN = re.compile(r"\\[A-Za-z]+|\d+(?:\.\d+)?|\S")


def formula(source: str, spoken: str) -> Markup:
    """A formula on a line of its own; `spoken` is what a screen reader says."""
    return tag("div", _math(source, spoken, display="block"), class_="formula")


def inline(source: str, spoken: str) -> Markup:
    """A formula within a line."""
    return _math(source, spoken, display="inline")


def _math(source: str, spoken: str, *, display: str) -> Markup:
    tokens = list(_tokens(source))
    parser = _Parser(tokens, source)
    content = parser.row(end=None)
    return tag("math", tag("mrow", content), display=display, role="math", aria_label=spoken)


def _tokens(source: str) -> Iterator[str]:
    """Tokens; \\text{…} is one of them, since its spaces count."""
    position = 0
    while position < len(source):
        written = re.compile(r"\\text\{([^{}]*)\}").match(source, position)
        found = written or TOKEN.match(source, position)
        if found is None:  # a space
            position += 1
            continue
        yield found.group()
        position = found.end()


class _Parser:
    def __init__(self, tokens: list[str], source: str) -> None:
        self.tokens, self.place, self.source = tokens, 0, source

    def row(self, end: str | None) -> Markup:
        """Everything up to the closing brace, or up to the end."""
        parts = []
        while self.place < len(self.tokens) and self.tokens[self.place] != end:
            parts.append(self.item())
        if end is not None:
            self.take(end)
        return join(parts)

    def take(self, expected: str) -> None:
        if self.place >= len(self.tokens) or self.tokens[self.place] != expected:
            raise ValueError(f"{self.source}: {expected} is missing")
        self.place += 1

    def group(self) -> Markup:
        """One atom, or what stands in braces."""
        if self.place < len(self.tokens) and self.tokens[self.place] == "{":
            self.place += 1
            return tag("mrow", self.row(end="}"))
        return self.atom()

    def item(self) -> Markup:
        """An atom with what is below and above it."""
        is_large = self.tokens[self.place].removeprefix("\\") in LARGE
        base = self.group()
        below = above = None
        while self.place < len(self.tokens) and self.tokens[self.place] in "_^":
            sign = self.tokens[self.place]
            self.place += 1
            if sign == "_":
                below = self.group()
            else:
                above = self.group()
        if below is not None and above is not None:
            return tag("munderover" if is_large else "msubsup", base, below, above)
        if below is not None:
            return tag("munder" if is_large else "msub", base, below)
        if above is not None:
            return tag("mover" if is_large else "msup", base, above)
        return base

    def atom(self) -> Markup:
        if self.place >= len(self.tokens):
            raise ValueError(f"{self.source}: ends too early")
        token = self.tokens[self.place]
        self.place += 1
        if token.startswith("\\text{"):
            return tag("mtext", token.removeprefix("\\text{").removesuffix("}").replace(" ", "\u00a0"))
        if token == "\\frac":
            return tag("mfrac", self.group(), self.group())
        if token == "\\sqrt":
            return tag("msqrt", self.group())
        if token.startswith("\\"):
            return self.named(token.removeprefix("\\"))
        if token[0].isdigit():
            return tag("mn", token)
        if token.isalpha():
            return tag("mi", token)
        return tag("mo", {"-": "−", "*": "∗"}.get(token, token), **_shape(token))

    def named(self, name: str) -> Markup:
        if name in LETTERS:
            return tag("mi", LETTERS[name])
        if name in FUNCTIONS:
            return tag("mi", name)
        if name in SIGNS:
            return tag("mo", SIGNS[name])
        raise ValueError(f"{self.source}: \\{name} is not known")


def _shape(sign: str) -> dict[str, str]:
    """Bars and brackets that do not grow, so that |q| stays as high as its letter."""
    return {"stretchy": "false"} if sign in "|()[]" else {}
