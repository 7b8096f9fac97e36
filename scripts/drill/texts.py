"""Unexpected lines of text."""

import random

from drill.lab import SYLLABLES

# None of these is a line feed, so none may end a line.
NASTY = (
    *("\x00", "\x07", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\ufeff", "\u200b", "\u00ad"),
    *(
        "\r",
        "\xa0",
        "\u3000",
        "e\u0301",
        "🙂",
        "👩‍👩‍👧",
        "\u202eabc",
        "ﬁ",
        "ẞ",
        "Ω",
        "日本語",
        "مرحبا",
        "�",
        "\U0010ffff",
    ),
    *("▁", "<s>", "</s>", "<unk>", "<pad>", "&amp;", "\\n", "|||", '"', "''", "``", "%s", "{}", "0" * 400, ". " * 40),
)
BLANK = ("", " ", "   ", "\u200b", "\u3000", "\xa0", "\r")


def sentence(dice: random.Random) -> str:
    return " ".join("".join(dice.choices(SYLLABLES, k=dice.randint(1, 3))) for _ in range(dice.randint(1, 8)))


def nasty_line(dice: random.Random) -> str:
    """A sentence with something nasty somewhere in it; now and then nothing else, nothing at all, or far too much."""
    kind = dice.random()
    if kind < 0.15:
        return dice.choice(BLANK)
    if kind < 0.25:
        return "".join(dice.choices(NASTY, k=dice.randint(1, 6)))
    if kind < 0.27:
        return dice.choice(["x" * 600, "ba " * 200, "." * 500, "日" * 300])
    words = sentence(dice).split(" ")
    for _ in range(dice.randint(0, 2)):
        words.insert(dice.randint(0, len(words)), dice.choice(NASTY))
    return dice.choice(["", " ", ""]).join(["", *words[:1]]) + " " + " ".join(words[1:])
