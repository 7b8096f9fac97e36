"""Models that write from right to left: what goes into a translator and comes out of it is in reading order."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from support.fake_models import ByteTokenizer, CopyModel
from support.small_runs import make_small_run, write_corpora
from translator import Translator, translate
from translator.config import load_file, save_file
from translator.decoding.line_translator import LineTranslator
from translator.decoding.search import SearchOptions
from translator.decoding.target_order import written_at
from translator.errors import OptionError, UserError
from translator.ids import BOS, EOS
from translator.inspection.inspect import inspect_line
from translator.report.forced_pass import force_references

SOURCES = ["A man reads a book.", "Anna has 12 red dogs.", "Two dogs", "The house is in the snow."]
TARGETS = ["Ein Mann liest.", "Anna hat 12 rote Hunde 猫", "Zwei", ""]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of each kind a run that writes from left to right, and one with the same weights that writes from the right."""
    folder = tmp_path_factory.mktemp("runs")
    write_corpora(folder / "corpora")
    runs = {}
    for kind in ("transformer", "lstm"):
        for name in (kind, f"{kind}-reversed"):
            runs[name] = make_small_run(folder / name, folder / "corpora", kind)
        config = load_file(runs[f"{kind}-reversed"] / "config.yaml")
        config.data.reverse_target = True
        save_file(config, runs[f"{kind}-reversed"] / "config.yaml")
    return runs


@pytest.fixture(scope="module", params=["transformer", "lstm"])
def pair(request: pytest.FixtureRequest, runs: dict[str, Path]) -> tuple[Translator, Translator]:
    """Translators with the same weights: from left to right, and from right to left."""
    plain, turned = (Translator.load(runs[f"{request.param}{ending}"], "cpu") for ending in ("", "-reversed"))
    return plain, turned


def by_hand(translator: LineTranslator, source: str, target: str) -> tuple[list[float], torch.Tensor]:
    """Log-probabilities and mean attention of the reversed pieces and EOS, in double precision, as they are written."""
    (source_ids,), (pieces,) = translator.encode_sources([source]), translator.tokenizer.encode_target([target])
    written = [*reversed(pieces), EOS]
    model = translator.model.double().eval()
    try:
        with torch.no_grad():
            sources = torch.tensor([source_ids])
            decoded = model(sources, sources >= 0, torch.tensor([[BOS, *written[:-1]]]), need_weights=True)
            log_probs = torch.log_softmax(model.project(decoded.states[0]), -1)
    finally:
        model.float()
    assert decoded.attention is not None
    return [float(log_probs[step, piece]) for step, piece in enumerate(written)], decoded.attention[0].mean((0, 1))


@pytest.mark.parametrize(
    ("line", "expected"),
    [("a dog runs", "SNUR GOD A"), ("x", "X"), ("", ""), ("One two. Three four. Five", ".OWT ENO .RUOF EERHT EVIF")],
)
@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3}, {"sample": True, "top_k": 1}], ids=str)
def test_pieces_are_read_in_the_opposite_order(line: str, expected: str, options: dict[str, Any]) -> None:
    tokenizer = ByteTokenizer()
    model = CopyModel(tokenizer.target_vocab_size)
    found = LineTranslator(model, tokenizer, options=SearchOptions(**options), max_pieces=12, reverse_target=True)
    assert found.translate([line]) == [expected]


def test_the_search_is_that_of_the_model(pair: tuple[Translator, Translator]) -> None:
    """It finds what a translator from left to right finds with the same weights, read from the other end."""
    plain, turned = pair
    for translator in pair:
        translator.options = translator.options.changed(num_hypotheses=3)
    expected, found = [], []
    for translator, results in ((plain, expected), (turned, found)):
        parts = translator.parts(SOURCES, None, 0)
        translator.find_hypotheses(parts)
        results += [hypothesis for part in parts for hypothesis in part.hypotheses]
    assert len(found) == 3 * len(SOURCES)
    assert [one._replace(ids=one.ids[::-1]) for one in found] == expected
    texts = [output.text for one in turned.translate_fully(SOURCES) for output in one.outputs]
    assert texts == turned.tokenizer.decode_target([one.ids[::-1] for one in expected])


def test_given_translations_are_scored_from_their_end(pair: tuple[Translator, Translator]) -> None:
    _, turned = pair
    scored = turned.score(SOURCES, TARGETS, need_attention=True)
    for source, target, forced in zip(SOURCES, TARGETS, scored, strict=True):
        values, weights = by_hand(turned, source, target)
        assert forced.score == pytest.approx(sum(values), rel=1e-5)
        assert forced.piece_scores == pytest.approx([*values[-2::-1], values[-1]], rel=1e-4, abs=1e-4)
        assert forced.attention is not None
        expected = torch.cat([weights[:-1].flip(0), weights[-1:]]).float()
        assert torch.allclose(forced.attention, expected, atol=1e-5)
    (ids,) = turned.tokenizer.encode_target([TARGETS[1]])
    assert 4 + len("猫".encode()) < len(ids), "some of the pieces are bytes"


def test_attention_belongs_to_the_pieces_that_are_read(pair: tuple[Translator, Translator]) -> None:
    _, turned = pair
    for source, found in zip(SOURCES, turned.translate_fully(SOURCES, need_attention=True), strict=True):
        assert found.outputs[0].attention is not None
        (shown,) = found.outputs[0].attention
        assert turned.tokenizer.target_pieces([EOS]) == shown.target_pieces[-1:]
        pieces = {name: piece for piece, name in enumerate(turned.tokenizer.target_pieces(range(330)))}
        ids = [pieces[name] for name in shown.target_pieces[:-1]]
        assert turned.tokenizer.decode_target([ids]) == [found.outputs[0].text]
        (forced,) = turned.force(*turned.tensors(turned.encode_sources([source])), [ids], need_attention=True)
        assert forced.score == pytest.approx(found.outputs[0].score, abs=1e-4)
        assert forced.attention is not None
        assert torch.allclose(shown.weights, forced.attention, atol=1e-6)


def test_what_is_shown_of_a_translation_is_in_reading_order(pair: tuple[Translator, Translator]) -> None:
    shown = [inspect_line(one, SOURCES[0], need_heads=True, need_beam=True)["segments"][0] for one in pair]
    first, second = (segment["hypotheses"][0] for segment in shown)
    assert (shown[0]["reverse_target"], shown[1]["reverse_target"]) == (False, True)
    order = written_at(len(first["pieces"]))
    assert second["pieces"] == [first["pieces"][step] for step in order]
    for name in ("attention", "weights"):
        one, other = (
            np.array(segment["heads"]["weights"] if name == "weights" else hypothesis["attention"])
            for segment, hypothesis in zip(shown, (first, second), strict=True)
        )
        assert (one[..., order, :] == other).all()
    # The beam is that of the search, which writes the last piece first.
    assert shown[0]["beam"] == shown[1]["beam"]
    best = [node["piece"] for node in shown[1]["beam"]["nodes"] if node["best"]]
    assert best[-2::-1] == [piece["piece"] for piece in second["pieces"][:-1]]


def test_a_report_reads_what_the_model_says_about_the_references(pair: tuple[Translator, Translator]) -> None:
    _, turned = pair
    for sentence in force_references(turned, SOURCES, TARGETS):
        values, _ = by_hand(turned, SOURCES[sentence.index], TARGETS[sentence.index])
        assert sentence.log_probs == pytest.approx([*values[-2::-1], values[-1]], rel=1e-4, abs=1e-4)
        assert sentence.target_ids == [*turned.tokenizer.encode_target([TARGETS[sentence.index]])[0], EOS]
        (forced,) = turned.score([SOURCES[sentence.index]], [TARGETS[sentence.index]], need_attention=True)
        assert sentence.attention is not None
        assert forced.attention is not None
        assert sentence.attention.mean((0, 1)) == pytest.approx(forced.attention.numpy(), abs=2e-3)
        assert (sentence.confidences >= np.exp(sentence.log_probs) - 1e-6).all()


@pytest.mark.parametrize("beam_size", [1, 3])
def test_words_are_forbidden_as_they_are_read(beam_size: int) -> None:
    tokenizer = ByteTokenizer()
    model = CopyModel(tokenizer.target_vocab_size)
    found = {}
    for word in ("dog", "god"):
        options = SearchOptions(beam_size=beam_size, forbid=[word])
        found[word] = LineTranslator(model, tokenizer, options=options, joiner="", reverse_target=True)
    assert found["god"].translate(["god a"]) == ["A DOG"]
    assert "DOG" not in found["dog"].translate(["god a"])[0]
    assert found["dog"].translate(["dog a"]) == ["A GOD"]


def test_ctranslate2_finds_the_same(runs: dict[str, Path]) -> None:
    pytest.importorskip("ctranslate2")
    ours, theirs = (
        Translator.load(runs["transformer-reversed"], "cpu", engine=engine) for engine in ("torch", "ctranslate2")
    )
    assert theirs.engine is not None
    assert theirs.translate(SOURCES) == ours.translate(SOURCES)


def test_what_needs_the_beginning_first_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    run = runs["transformer-reversed"]
    turned = Translator.load(run, "cpu")
    for ask in (
        lambda: turned.translate_fully(SOURCES[:2], prefixes=["", "Ein"]),
        lambda: inspect_line(turned, SOURCES[0], prefix="Ein"),
        lambda: inspect_line(turned, SOURCES[0], prefix=["Ein"]),
    ):
        with pytest.raises(OptionError, match=r"prefix=Ein: not with a run .* data\.reverse_target=true"):
            ask()
    assert turned.translate_fully(SOURCES[:2], prefixes=["", " "]) == turned.translate_fully(SOURCES[:2])
    (tmp_path / "terms.tsv").write_text("man\tMann\n", encoding="utf-8")
    with pytest.raises(OptionError, match=r"terms=.*terms\.tsv: not with a run"):
        Translator.load(run, "cpu", terms=str(tmp_path / "terms.tsv"))
    turned.options = turned.options.changed(terms=str(tmp_path / "terms.tsv"))
    with pytest.raises(OptionError, match=r"terms=.*terms\.tsv: not with"):
        turned.translate(SOURCES)
    with pytest.raises(UserError, match=r"transformer-reversed: its data.reverse_target is not that of .*/transformer"):
        Translator.load([runs["transformer"], run], "cpu")
    together = Translator.load([run, run], "cpu")
    assert together.translate(SOURCES) == Translator.load(run, "cpu").translate(SOURCES)


@pytest.mark.parametrize("flag", ["--prefix", "--terms"])
def test_the_command_refuses_them_by_name(
    runs: dict[str, Path], tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lines").write_text("man\tMann\n", encoding="utf-8")
    arguments = ["--model", str(runs["lstm-reversed"]), "--device", "cpu", flag, str(tmp_path / "lines")]
    assert translate.main([*arguments, str(tmp_path / "lines"), "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert f"{flag} {tmp_path / 'lines'}: not with a run that was trained with data.reverse_target=true" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
