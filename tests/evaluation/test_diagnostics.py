import pytest

from translator.evaluation.diagnostics import diagnose, is_copied, is_repeating


@pytest.mark.parametrize(
    "text",
    [
        "a man a man a man",
        "das ist ist ist gut",
        "x one two three one two three one two three",
        "我我我我我",
        "一只狗一只狗一只狗",
    ],
)
def test_loops_are_seen(text: str) -> None:
    assert is_repeating(text)


@pytest.mark.parametrize(
    "text", ["", "a man and a man", "that that is is", "no, no!", "好的!!!", "……", "妈妈和爸爸", "Hmm"]
)
def test_ordinary_text_is_not_a_loop(text: str) -> None:
    assert not is_repeating(text)


def test_copies_are_the_same_words_whatever_the_case() -> None:
    assert is_copied("A man reads", "a man  reads ")
    assert is_copied("一个男人", "一个男人")
    assert not is_copied("A man reads", "Ein Mann liest")
    assert not is_copied("3 + 4 = 7", "3 + 4 = 7")
    assert not is_copied("4", "4")
    assert not is_copied("Berlin", "Berlin"), "a single word"


def test_rates_are_shares_of_the_sentences_that_are_not_blank() -> None:
    sources = ["a b", "c d", "e f", "g h", "  ", "so so so so"]
    outputs = ["", "c d", "ja ja ja", "gut", "", "sehr sehr sehr"]
    result = diagnose(sources, outputs)
    assert (result.empty, result.copied, result.repeating) == (0.2, 0.2, 0.2)
    assert result.num_sentences == 5
    assert diagnose([], []).to_dict() == {"empty": 0.0, "copied": 0.0, "repeating": 0.0, "num_sentences": 0}
