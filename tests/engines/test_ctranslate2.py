"""`engine="ctranslate2"` gives the same translations as torch, with every option."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from support.exported_runs import LINES, PAIRS, lstm_run
from translator import Translator
from translator.decoding.interfaces import Translation
from translator.decoding.line_translator import LineTranslator
from translator.engines import choice
from translator.engines.ctranslate2 import CTranslate2Engine
from translator.errors import UserError
from translator.ids import BOS, EOS, PAD
from translator.models.base import Seq2Seq
from translator.runs.loading import LoadedRun, load_run
from translator.schema.decode import SearchOptions, Stop
from translator.translate import main

UNSUPPORTED: list[dict[str, Any]] = [
    {"sample": True},
    {"forbid": ["Haus"]},
    {"no_repeat_ngram": 3},
    {"repetition_penalty": 1.2},
    {"stop": "exact"},
    {"length_penalty": "gnmt"},
    {"length_penalty": "none"},
    {"alpha": 0.0},
]


def both(folder: Path, **options: Any) -> tuple[Translator, Translator]:
    """With the stopping rule that they have in common."""
    return (
        Translator.load(folder, device="cpu", stop="first", **options),
        Translator.load(folder, device="cpu", engine="ctranslate2", **options),
    )


def assert_same(ours: list[Translation], theirs: list[Translation]) -> None:
    assert len(ours) == len(theirs)
    for our_line, their_line in zip(ours, theirs, strict=True):
        assert [output.text for output in our_line.outputs] == [output.text for output in their_line.outputs]
        assert replace(our_line, outputs=[]) == replace(their_line, outputs=[])
        for one, other in zip(our_line.outputs, their_line.outputs, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-3)
            assert one.normalized_score == pytest.approx(other.normalized_score, abs=1e-4)
            assert (one.num_pieces, one.alignment) == (other.num_pieces, other.alignment)


@pytest.mark.parametrize("name", ["pre", "post", "rotary"])
@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 4, "num_hypotheses": 4}, {"alpha": 0.6}, {"mbr": 6, "num_hypotheses": 2}],
    ids=["greedy", "n-best", "alpha", "minimum risk"],
)
def test_texts_scores_and_n_best_lists_are_those_of_torch(
    name: str, options: dict[str, Any], run: Callable[[str], Path]
) -> None:
    torch_, fast = both(run(name), **options)
    assert_same(torch_.translate_fully(LINES), fast.translate_fully(LINES))


def test_it_has_its_own_stopping_rule_unless_one_is_asked_for(run: Callable[[str], Path]) -> None:
    assert Translator.load(run("pre"), device="cpu").options.stop == "exact"
    for engine in ("ctranslate2", "auto"):
        fast = Translator.load(run("pre"), device="cpu", engine=engine)
        assert isinstance(fast.engine, CTranslate2Engine)
        assert fast.options.stop == "first"
    exact = Translator.load(run("pre"), device="cpu", engine="auto", stop="exact")
    assert exact.engine is None
    assert exact.options.stop == "exact"


def test_the_search_is_really_done_by_the_engine(run: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    fast = Translator.load(run("pre"), device="cpu", engine="ctranslate2")
    monkeypatch.setattr(LineTranslator, "_search", None)
    learnt = [source for source, _ in PAIRS]
    assert [bool(text) for text in fast.translate(learnt)] == [True] * len(learnt)


@pytest.mark.parametrize(
    "options",
    [
        {"max_length_ratio": 0.5, "max_length_extra": 3},
        {"min_length": 12},
        {"min_length_ratio": 1.5},
        {"max_length_ratio": 0.0, "max_length_extra": 5_000},
    ],
    ids=["short", "minimum", "minimum ratio", "beyond the positions"],
)
@pytest.mark.parametrize("beam_size", [1, 3])
def test_length_limits_hold(options: dict[str, Any], beam_size: int, run: Callable[[str], Path]) -> None:
    """Each sentence has its own limits."""
    lines = LINES[:2] if options.get("max_length_extra") == 5_000 else LINES[:4]
    torch_, fast = both(run("pre"), beam_size=beam_size, **options)
    assert_same(torch_.translate_fully(lines), fast.translate_fully(lines))


def test_greedy_search_is_left_to_torch_by_no_limit(
    run: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the limits make of it is the same as with torch: see the test above."""
    fast = Translator.load(run("pre"), device="cpu", engine="ctranslate2", beam_size=1)
    monkeypatch.setattr(LineTranslator, "_search", None)
    for length in (3, 20):
        fast.options = fast.options.changed(min_length=length, max_length_ratio=0, max_length_extra=length)
        (exactly,) = fast.translate_fully([LINES[0]])
        assert exactly.outputs[0].num_pieces == length


@pytest.mark.parametrize("num_hypotheses", [1, 2])
def test_beams_that_reach_the_limit_are_searched_again(
    num_hypotheses: int, run: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch_, fast = both(run("pre"), beam_size=5, num_hypotheses=num_hypotheses)
    assert isinstance(fast.engine, CTranslate2Engine)
    within_limits, settled = fast.engine._within_limits, []

    def counting(*arguments: Any) -> Any:
        found = within_limits(*arguments)
        settled.extend(one is not None for one in found)
        return found

    monkeypatch.setattr(fast.engine, "_within_limits", counting)
    sources = [source for source, _ in PAIRS]
    for longest in range(1, 26):
        for one in (torch_, fast):
            one.options = one.options.changed(max_length_ratio=0, max_length_extra=longest)
        assert_same(torch_.translate_fully(sources), fast.translate_fully(sources))
    assert len(settled) >= 30
    assert sum(settled) >= 8  # the others are left to torch


@pytest.mark.parametrize("num_hypotheses", [1, 2])
def test_beams_that_end_just_before_the_limit_have_no_hypothesis_that_reaches_it(
    num_hypotheses: int, run: Callable[[str], Path], tmp_path: Path
) -> None:
    """CTranslate2, given the same limit, would cut the others of the beam there and count them as well."""
    loaded = load_run(run("post"), torch.device("cpu"))
    (source, *_), (target, *_) = zip(*PAIRS, strict=True)
    like_to_end_everywhere(loaded, source, target)
    engine = CTranslate2Engine(tmp_path, loaded)
    words = [source.split() for source, _ in PAIRS]
    lines = sorted({" ".join(line[start:end]) for line in words for end in range(9) for start in range(end)})
    options = SearchOptions(beam_size=8, num_hypotheses=num_hypotheses, stop=Stop.first, max_length_ratio=0)
    left = 0
    for longest in range(3, 10):
        limited = options.changed(max_length_extra=longest)
        ours = LineTranslator(loaded.model, loaded.tokenizer, options=limited).translate_fully(lines)
        theirs = LineTranslator(loaded.model, loaded.tokenizer, options=limited, engine=engine).translate_fully(lines)
        left += sum(one.left_by_engine for one in theirs)
        assert_same(ours, [replace(one, left_by_engine=False) for one in theirs])
    assert left < 0.6 * len(lines) * 7


def like_to_end_everywhere(run: LoadedRun, source: str, target: str) -> None:
    """Makes EOS likelier after every piece, what is never written less likely, and the others less different."""
    (source_ids,), (target_ids,) = run.tokenizer.encode_source([source]), run.tokenizer.encode_target([target])
    ids = torch.tensor([source_ids])
    with torch.no_grad():
        state = run.model.eval()(ids, ids != PAD, torch.tensor([[BOS, *target_ids]])).states[0].mean(0)  # (D,)
        run.model.output_weight.mul_(0.7)
        run.model.output_weight[EOS] += 3 * state / state.dot(state)
        run.model.output_weight[[PAD, BOS]] -= 10 * state / state.dot(state)


def test_greedy_search_gives_the_same_texts_without_scores(run: Callable[[str], Path]) -> None:
    _, fast = both(run("pre"), beam_size=1, max_length_ratio=0.5, max_length_extra=3)
    scored, unscored = fast.translate_fully(LINES), fast.translate_fully(LINES, need_scores=False)
    texts = [translation.outputs[0].text for translation in scored]
    assert texts == [translation.outputs[0].text for translation in unscored] == fast.translate(LINES)
    assert all(math.isnan(one.outputs[0].score) for one in unscored if one.num_source_pieces)
    assert all(one.outputs[0].score < 0 for one in scored if one.num_source_pieces)


def like_to_end_at_once(model: Seq2Seq, source: torch.Tensor) -> None:
    """Turns the output vector of EOS towards the decoder's first state."""
    with torch.no_grad():
        state = model(source, source != PAD, torch.tensor([[BOS]])).states[0, 0]  # (D,)
        logits = model.project(state)  # (V,)
        model.output_weight[EOS] += (logits.max() - logits[EOS]) * state / state.dot(state)


@pytest.mark.parametrize("num_hypotheses", [1, 2])
def test_what_beams_gain_where_an_output_may_not_be_empty_is_taken_away(
    num_hypotheses: int, run: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_run(run("pre"), torch.device("cpu"))
    sources = [source for source, _ in PAIRS]
    like_to_end_at_once(loaded.model, torch.tensor(loaded.tokenizer.encode_source(sources[:1])))
    options = SearchOptions(beam_size=5, stop=Stop.first, num_hypotheses=num_hypotheses)
    ours = LineTranslator(loaded.model, loaded.tokenizer, options=options).translate_fully(sources)
    engine = CTranslate2Engine(tmp_path, loaded)
    shortest: list[int] = []

    class Counting:
        """Says with which shortest length the library searches."""

        def translate_batch(self, *arguments: Any, **options: Any) -> Any:
            shortest.append(options["min_decoding_length"])
            return library.translate_batch(*arguments, **options)

        def score_batch(self, *arguments: Any, **options: Any) -> Any:
            return library.score_batch(*arguments, **options)

    library = engine.translator
    engine.translator = Counting()  # type: ignore[assignment]
    monkeypatch.setattr(LineTranslator, "_search", None)  # torch does not search
    fast = LineTranslator(loaded.model, loaded.tokenizer, options=options, engine=engine)
    assert_same(ours, fast.translate_fully(sources))
    assert set(shortest) == {1}
    assert fast.translate(sources) == [translation.outputs[0].text for translation in ours]
    gains = engine._gains(loaded.tokenizer.encode_source(sources))
    assert max(gains) > 0.4


def test_prefixes_alignments_and_attention_still_work(run: Callable[[str], Path]) -> None:
    torch_, fast = both(run("pre"))
    prefixes = ["Ein", "", "Haus", *[""] * (len(LINES) - 3)]
    wanted: dict[str, Any] = {"prefixes": prefixes, "need_alignment": True, "need_attention": True}
    ours, theirs = torch_.translate_fully(LINES, **wanted), fast.translate_fully(LINES, **wanted)
    assert_same(ours, theirs)
    assert theirs[0].outputs[0].text.startswith("Ein")
    assert theirs[2].outputs[0].text.startswith("Haus")
    for our_line, their_line in zip(ours, theirs, strict=True):
        maps = zip(our_line.outputs[0].attention or [], their_line.outputs[0].attention or [], strict=True)
        assert all(torch.allclose(one.weights, other.weights, atol=1e-4) for one, other in maps)


def test_the_batch_does_not_matter(run: Callable[[str], Path]) -> None:
    fast = Translator.load(run("pre"), device="cpu", engine="ctranslate2")
    together = fast.translate_fully(LINES)
    fast.options = fast.options.changed(batch_tokens=1)
    assert_same(together, fast.translate_fully(LINES))
    assert_same(together[:4], fast.translate_fully(LINES[:4]))


def test_only_a_sentence_beyond_the_table_of_positions_is_left_to_torch(
    run: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = Translator.load(run("pre"), device="cpu", engine="ctranslate2")
    engine = fast.engine
    assert isinstance(engine, CTranslate2Engine)
    options = SearchOptions(max_length_ratio=1.0, max_length_extra=40)
    (short,) = fast.tokenizer.encode_source([PAIRS[0][0]])
    long = short[:-1] + short
    ((alone,),) = engine.find([[short]], options)
    assert alone
    monkeypatch.setattr("translator.engines.ctranslate2.MAX_POSITIONS", len(short) + 40)
    assert engine.find([[long, short, long], [long]], options) == [[None, alone, None], [None]]


def test_torch_keeps_its_threads(run: Callable[[str], Path]) -> None:
    """Each engine's workers have one thread; what is left to torch should have all."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        Translator.load(run("pre"), device="cpu", engine="ctranslate2").translate(LINES)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_int8_translates_too(run: Callable[[str], Path]) -> None:
    fast = Translator.load(run("pre"), device="cpu", engine="ctranslate2", int8=True)
    assert isinstance(fast.engine, CTranslate2Engine)
    assert fast.engine.translator.compute_type.startswith("int8")
    outputs = fast.translate(LINES)
    assert [bool(output) for output in outputs] == [bool(line.strip()) for line in LINES]
    exact = Translator.load(run("pre"), device="cpu", stop="first")
    assert_same(
        exact.translate_fully(LINES[:3], prefixes=["Ein"] * 3), fast.translate_fully(LINES[:3], prefixes=["Ein"] * 3)
    )


@pytest.mark.parametrize("options", UNSUPPORTED, ids=lambda options: "-".join(options))
def test_options_it_does_not_have_are_refused_by_name_or_left_to_torch(
    options: dict[str, Any], run: Callable[[str], Path]
) -> None:
    with pytest.raises(UserError, match=next(iter(options))):
        Translator.load(run("pre"), device="cpu", engine="ctranslate2", **options)
    expected = Translator.load(run("pre"), device="cpu", **options)
    automatic = Translator.load(run("pre"), device="cpu", engine="auto", **options)
    assert automatic.engine is None
    assert_same(expected.translate_fully(LINES), automatic.translate_fully(LINES))
    later = Translator.load(run("pre"), device="cpu", engine="auto")  # options may change after loading
    assert isinstance(later.engine, CTranslate2Engine)
    later.options = later.options.changed(**options)
    expected = Translator.load(run("pre"), device="cpu", **{"stop": "first", **options})
    assert_same(expected.translate_fully(LINES), later.translate_fully(LINES))
    required = Translator.load(run("pre"), device="cpu", engine="ctranslate2")
    required.options = required.options.changed(**options)
    with pytest.raises(UserError, match=next(iter(options))):
        required.translate(LINES)


def test_models_it_cannot_run_are_refused_or_left_to_torch(run: Callable[[str], Path], tmp_path: Path) -> None:
    lstm = lstm_run(tmp_path / "lstm" / "run")
    for folders, expected in ((lstm, "LSTM"), ([run("pre"), run("pre")], "ensembles")):
        with pytest.raises(UserError, match=expected):
            Translator.load(folders, device="cpu", engine="ctranslate2")
        assert Translator.load(folders, device="cpu", engine="auto").engine is None


def test_contradictory_options_are_refused_under_their_python_names_and_their_flags(
    run: Callable[[str], Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in.txt").write_text("A man.\n", encoding="utf-8")
    arguments = [str(tmp_path / "in.txt"), "--model", str(run("pre")), "--device"]
    with pytest.raises(
        UserError, match=r"^int8=True: the torch engine computes in float32; use the ctranslate2 engine$"
    ):
        Translator.load(run("pre"), device="cpu", int8=True)
    assert main([*arguments, "cpu", "--int8"]) == 2
    expected = "translate: --int8: the torch engine computes in float32; use the ctranslate2 engine\n"
    assert capfd.readouterr().err == expected
    with pytest.raises(UserError, match=r"^engine=abacus: must be one of torch, ctranslate2, auto$"):
        Translator.load(run("pre"), device="cpu", engine="abacus")
    with pytest.raises(UserError, match=r"^device=mps: the ctranslate2 engine runs on the CPU; use cpu, or the torch"):
        choice.choose_engine("ctranslate2", False, [run("pre")], [], Translator.load(run("pre"), "cpu").options, "mps")


def test_without_the_library_auto_is_torch_and_one_line_says_what_to_install(
    run: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.delitem(sys.modules, "translator.engines.ctranslate2")
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: None)
    assert Translator.load(run("pre"), device="cpu", engine="auto").engine is None
    with pytest.raises(
        UserError, match=r"^the ctranslate2 engine: needs ctranslate2, .*; pip install 'translator\[fast\]'"
    ):
        Translator.load(run("pre"), device="cpu", engine="ctranslate2")
