"""Tying of the source embedding, target embedding and output projection."""

import pytest
import torch

from translator.models.embeddings import Embeddings


@pytest.mark.parametrize(("tie", "num_matrices"), [("none", 3), ("target", 2), ("all", 1)])
def test_tied_matrices_are_shared(tie: str, num_matrices: int) -> None:
    embeddings = Embeddings(9, 9, 4, tie, bias=True)
    matrices = [embeddings.source.weight, embeddings.target.weight, embeddings.output_weight]
    assert len({matrix.data_ptr() for matrix in matrices}) == num_matrices
    assert sum(parameter.numel() for parameter in embeddings.parameters()) == num_matrices * 36 + 9


def test_ids_are_looked_up_on_their_own_side() -> None:
    embeddings = Embeddings(9, 7, 4, "target")
    ids = torch.tensor([[3, 0], [6, 3]])
    assert torch.equal(embeddings.source(ids)[1, 0], embeddings.source.weight[6])
    assert torch.equal(embeddings.target(ids)[1, 0], embeddings.output_weight[6])


def test_initial_logits_have_unit_variance() -> None:
    torch.manual_seed(0)
    weight = Embeddings(9, 4_000, 256, "none").output_weight
    state = torch.nn.functional.layer_norm(torch.randn(256), (256,))
    assert (weight @ state).var().item() == pytest.approx(1.0, abs=0.1)


def test_what_cannot_be_tied_is_refused() -> None:
    with pytest.raises(ValueError, match="needs one vocabulary"):
        Embeddings(9, 7, 4, "all")
    with pytest.raises(ValueError, match="one of none, target, all"):
        Embeddings(9, 7, 4, "both")


def test_tags_are_spared_by_word_dropout_and_cutoff() -> None:
    torch.manual_seed(1)
    embeddings = Embeddings(20, 20, 8, "all", word_dropout=0.999999)
    embeddings.spared = range(4, 6)
    ids = torch.tensor([[4, 9, 3], [5, 4, 10]])
    for kept in (None, torch.zeros_like(ids, dtype=torch.bool)):
        vectors = embeddings.of_source(ids, kept)
        is_tag = (ids == 4) | (ids == 5)
        assert torch.equal(vectors[is_tag], embeddings.source(ids[is_tag]))
        assert not vectors[~is_tag].any()
