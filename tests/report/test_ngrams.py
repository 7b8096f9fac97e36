import random

from translator.report.figures.ngrams import LONGEST, ngrams_of, unbalanced_ngrams


def counted(words: list[str], ngram: tuple[str, ...]) -> int:
    return sum(tuple(words[i : i + len(ngram)]) == ngram for i in range(len(words)))


def test_all_ngrams_up_to_four_words() -> None:
    assert list(ngrams_of(["a", "b", "a"])) == [("a",), ("b",), ("a",), ("a", "b"), ("b", "a"), ("a", "b", "a")]
    assert max(map(len, ngrams_of(list("abcdefg")))) == LONGEST


def test_surplus_and_deficit_are_counted_sentence_by_sentence() -> None:
    rng = random.Random(3)
    outputs, references = ([rng.choices("abc", k=rng.randint(0, 7)) for _ in range(12)] for _ in range(2))
    lists = unbalanced_ngrams(outputs, references, " ")
    assert lists["too_often"]
    assert lists["too_rarely"]
    for row in [*lists["too_often"], *lists["too_rarely"]]:
        ngram = tuple(row["ngram"].split())
        pairs = [(counted(o, ngram), counted(r, ngram)) for o, r in zip(outputs, references, strict=True)]
        surplus, missing = sum(max(0, o - r) for o, r in pairs), sum(max(0, r - o) for o, r in pairs)
        assert (row["num_surplus"], row["num_missing"]) == (surplus, missing)
        assert row["num_matched"] == sum(min(pair) for pair in pairs)
        assert row["balance"] == (surplus + 1) / (surplus + missing + 2)
    balances = [row["balance"] for row in lists["too_often"]]
    assert balances == sorted(balances, reverse=True)
    # No other n-gram has a larger surplus.
    everything = {ngram for words in outputs for ngram in ngrams_of(words)}
    best = max(everything, key=lambda n: _balance(outputs, references, n))
    assert balances[0] == _balance(outputs, references, best)


def _balance(outputs: list[list[str]], references: list[list[str]], ngram: tuple[str, ...]) -> float:
    pairs = [(counted(o, ngram), counted(r, ngram)) for o, r in zip(outputs, references, strict=True)]
    surplus, missing = sum(max(0, o - r) for o, r in pairs), sum(max(0, r - o) for o, r in pairs)
    return (surplus + 1) / (surplus + missing + 2)


def test_chinese_ngrams_have_no_spaces() -> None:
    assert unbalanced_ngrams([["猫", "猫"]], [["狗"]], "")["too_often"][0]["ngram"] in ("猫", "猫猫")
