from support.fake_models import ByteTokenizer, CopyModel
from translator.decoding.forbidden_words import spellings
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions


def test_all_ways_to_spell_a_word_are_found_the_shortest_first() -> None:
    pieces = {"▁": 4, "a": 5, "b": 6, "ab": 7, "▁a": 8, "▁ab": 9}
    assert spellings("▁ab", pieces) == [(9,), (8, 6), (4, 7), (4, 5, 6)]
    assert spellings("▁xy", pieces) == []


def test_a_word_with_very_many_spellings_does_not_take_forever() -> None:
    pieces = {"a" * length: 3 + length for length in range(1, 20)}
    found = spellings("a" * 60, pieces)
    assert 1 <= len(found) <= 2_000
    assert all(sum(piece - 3 for piece in ids) == 60 for ids in found)


def test_a_forbidden_word_is_not_written() -> None:
    tokenizer = ByteTokenizer()
    model = CopyModel(tokenizer.target_vocab_size)
    line = "a dog and a hotdog"
    assert LineTranslator(model, tokenizer).translate([line]) == [line.upper()]
    for joiner in (" ", ""):
        translator = LineTranslator(model, tokenizer, options=SearchOptions(forbid=["dog"]), joiner=joiner)
        (output,) = translator.translate([line])
        assert " DOG" not in output
        assert ("DOG" not in output) == (joiner == "")  # without spaces a word may occur anywhere
        translator.options = SearchOptions()
        assert translator.translate([line]) == [line.upper()]
