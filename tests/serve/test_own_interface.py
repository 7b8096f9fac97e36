"""/v1/translate: sentences, n-best lists, prefixes, details and streams."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.servers import RunningServer, copier, running
from translator import Translator
from translator.inspection.inspect import inspect_line
from translator.serve.own_interface import MOST_FORBIDDEN

TEXT = "A man reads a book. Two dogs run.\n\nThe house is red."


def ask(server: RunningServer, **body: Any) -> dict[str, Any]:
    answer = server.post("/v1/translate", body)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def test_sentences_are_translated_one_by_one_and_joined(model_server: RunningServer, small_run: Path) -> None:
    translator = Translator.load(small_run, "cpu")
    sentences = ["A man reads a book.", "Two dogs run.", "The house is red."]
    answer = ask(model_server, text=TEXT, nbest=2)
    translator.options = translator.options.changed(num_hypotheses=2)
    expected = translator.translate_fully(sentences)
    assert [one["source"] for one in answer["sentences"]] == sentences
    assert [one["line"] for one in answer["sentences"]] == [0, 0, 2]
    for one, translation in zip(answer["sentences"], expected, strict=True):
        assert [candidate["text"] for candidate in one["nbest"]] == [output.text for output in translation.outputs]
        assert one["score"] == pytest.approx(translation.outputs[0].score, abs=1e-4)
    translator.split_sentences = True
    assert answer["text"] == "\n".join(translator.translate(TEXT.split("\n")))
    assert answer["detected"]["language"] == "en"


def test_a_prefix_begins_the_translation(model_server: RunningServer, small_run: Path) -> None:
    answer = ask(model_server, text=TEXT, prefix="Das Buch", source="en", target="de", split_sentences=False)
    expected = Translator.load(small_run, "cpu").translate_fully(TEXT.split("\n"), prefixes=["Das Buch", "", ""])
    assert answer["text"] == "\n".join(translation.outputs[0].text for translation in expected)
    assert answer["text"].startswith("Das Buch")
    assert "detected" not in answer


def test_details_are_those_of_the_inspection(model_server: RunningServer, small_run: Path) -> None:
    translator = Translator.load(small_run, "cpu", num_hypotheses=2)
    translator.split_sentences = True
    details = {"heads": True, "heads_rank": 1, "beam": True, "runners_up": 2}
    answer = ask(model_server, text="A man reads. A dog.", nbest=2, details=details, prefix=["", "Ein"])
    expected = inspect_line(
        translator,
        "A man reads. A dog.",
        prefix=["", "Ein"],
        num_runners_up=2,
        need_heads=True,
        heads_rank=1,
        need_beam=True,
    )
    (sentence,) = answer["sentences"]
    assert sentence["details"] == json.loads(json.dumps(expected))
    assert answer["text"] == expected["text"]
    assert [segment["heads"]["rank"] for segment in expected["segments"]] == [1, 1]


def test_a_stream_gives_sentence_by_sentence(model_server: RunningServer) -> None:
    whole = ask(model_server, text=TEXT)
    answer = model_server.post("/v1/translate", {"text": TEXT, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = []
    for block in answer.body.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    assert [name for name, _ in events] == ["start", "sentence", "sentence", "sentence", "end"]
    assert events[0][1] == {name: whole[name] for name in ("source", "target", "detected")}
    assert [data["text"] for _, data in events[1:4]] == [one["text"] for one in whole["sentences"]]
    assert events[4][1] == {"text": whole["text"]}


def test_a_stream_says_what_went_wrong_after_it_began() -> None:
    model = copier()

    def fail(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError

    model.translate = fail  # type: ignore[method-assign]
    with running([model]) as server:
        answer = server.post("/v1/translate", {"text": "a", "stream": True})
    assert answer.status == 200
    assert answer.body.decode().endswith(
        'event: error\ndata: {"error": "the translation failed because of an internal error", "status": 500}\n\n'
    )


def test_a_model_that_writes_from_right_to_left_has_no_prefixes() -> None:
    model = copier()
    model.translator.reverse_target = True
    with running([model]) as server:
        assert ask(server, text="live", details=True)["text"] == "EVIL"
        for others in ({}, {"details": True}, {"details": True, "prefix": ["e"]}):
            answer = server.post("/v1/translate", {"text": "live", "prefix": "e"} | others)
            assert answer.status == 400
            assert answer.json["error"].startswith("prefix: not with a run that was trained with data.reverse_target")
        stream = server.post("/v1/translate", {"text": "live", "prefix": "e", "stream": True}).body.decode()
    assert 'event: error\ndata: {"error": "prefix: not with a run' in stream


def test_a_text_without_words_is_answered(model_server: RunningServer) -> None:
    assert ask(model_server, text="\n \n")["text"] == "\n\n"
    assert ask(model_server, text="")["sentences"] == []
    assert ask(model_server, text="", details=True, prefix="Ein")["text"] == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"txt": "a"}, "txt: unknown parameter; the parameters are text, source, "),
        ({"nbest": 12}, "nbest: must be a whole number from 1 to 11"),
        ({"nbest": True}, "nbest: must be a whole number from 1 to 11"),
        ({"options": 3}, "options: must be an object"),
        ({"options": {"beam": 3}}, "options.beam: unknown option; the options are beam_size, "),
        ({"options": {"max_length_extra": 100_000}}, "options.max_length_extra: unknown option"),
        ({"options": {"beam_size": 21}}, "options.beam_size: must be at most 20 on this server"),
        ({"options": {"beam_size": "wide"}}, "options.beam_size: must be a whole number"),
        ({"options": {"beam_size": 2}, "nbest": 3}, "options.num_hypotheses: a beam of 2 cannot give more"),
        ({"options": {"forbid": ["a"] * (MOST_FORBIDDEN + 1)}}, "options.forbid: at most 100 words"),
        ({"details": {"head": True}}, "details.head: unknown; details can have heads, heads_rank, beam, runners_up"),
        ({"details": {"heads": True, "heads_rank": 11}}, "heads_rank: must be a whole number from 0 to 10"),
        ({"details": "yes"}, "details: must be true or false"),
        ({"prefix": ["a"]}, "prefix: a list, with one for each segment, needs details"),
        ({"stream": 1}, "stream: must be true or false"),
        ({"source": 1}, "source: must be a text"),
    ],
    ids=str,
)
def test_mistakes_are_explained(server: RunningServer, body: dict[str, Any], message: str) -> None:
    answer = server.post("/v1/translate", {"text": "a", "target": "de", "source": "en"} | body)
    assert answer.status == 400
    assert answer.json["error"].startswith(message)


def test_not_only_the_text_is_limited(server: RunningServer) -> None:
    for body, message in (
        ({"prefix": "a" * 10_000}, "10,001 characters are more than the 10,000 allowed in a request"),
        ({"prefix": ["a" * 5_000] * 2, "details": True}, "10,001 characters are more than"),
        ({"options": {"forbid": ["a" * 501] * 2}}, "options.forbid: at most 100 words with 1,000 characters in all"),
    ):
        answer = server.post("/v1/translate", {"text": "a", "target": "de", "source": "en"} | body)
        assert answer.status == 400
        assert answer.json["error"].startswith(message)


def test_samples_are_the_same_with_details(server: RunningServer) -> None:
    body = {"text": "one two\none two\none two", "split_sentences": False}
    asked = body | {"options": {"sample": True, "temperature": 3}, "target": "de", "source": "en"}
    text = ask(server, **asked)["text"]
    assert len(set(text.split("\n"))) == 3
    assert ask(server, **asked, details=True)["text"] == text
