import torch

from translator.decoding.alignment import align_words, piece_texts, piece_words, to_pharaoh, word_attention
from translator.languages import alignment_tokens


def test_words_are_put_together_from_their_pieces() -> None:
    words, shares = piece_words(["▁Two", "▁do", "gs", "▁run", "."], alignment_tokens)
    assert words == ["Two", "dogs", "run", "."]
    assert shares.tolist() == [
        [1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0, 1],
    ]


def test_a_piece_of_several_chinese_characters_belongs_to_each_of_them() -> None:
    words, shares = piece_words(["▁", "两只", "狗。"], alignment_tokens)
    assert words == ["两", "只", "狗", "。"]
    assert shares.tolist() == [[0, 0.5, 0], [0, 0.5, 0], [0, 0, 0.5], [0, 0, 0.5]]


def test_characters_that_are_spelled_in_bytes_are_words_like_others() -> None:
    pieces = ["▁a", "▁", "<0xE7>", "<0x8B>", "<0x97>", "b"]
    assert piece_texts(pieces) == [" a", " ", "", "", "狗", "b"]
    words, shares = piece_words(pieces, alignment_tokens)
    assert words == ["a", "狗", "b"]
    assert shares[1].tolist() == [0, 0, 1, 1, 1, 0]


def test_source_weights_are_added_and_target_weights_averaged() -> None:
    attention = torch.tensor([[0.6, 0.2, 0.2], [0.0, 0.5, 0.5]])
    source_shares = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    target_shares = torch.tensor([[1.0, 1.0]])
    torch.testing.assert_close(word_attention(attention, source_shares, target_shares), torch.tensor([[0.3, 0.7]]))


def test_each_target_word_is_aligned_to_the_source_word_it_attends_to_most() -> None:
    attention = torch.tensor([[0.9, 0.1, 0.0], [0.1, 0.4, 0.5], [0.6, 0.2, 0.2]])
    pairs, num_source, num_target = align_words(["▁a", "▁b", "c"], ["▁X", "▁Y", "▁Z"], attention, str.split)
    assert pairs == [(0, 0), (0, 2), (1, 1)]
    assert (num_source, num_target) == (2, 3)
    assert to_pharaoh(pairs) == "0-0 0-2 1-1"
    assert align_words(["▁a"], [], torch.zeros(0, 1), str.split) == ([], 1, 0)
