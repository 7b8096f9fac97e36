"""Properties of the generated corpus and its files."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import environment
from translator.demo import LANGUAGES, Example, generate, write
from translator.demo import generator as generator_module
from translator.demo.combinations import Combination, split_of, split_of_all
from translator.languages import alignment_tokens

Corpus = dict[str, list[Example]]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate(seed=5, num_train=5_000, num_valid=200, num_test=200)


def test_sizes(corpus: Corpus) -> None:
    assert {split: len(examples) for split, examples in corpus.items()} == {"train": 5_000, "valid": 200, "test": 200}


def test_every_sentence_is_unique_in_every_language(corpus: Corpus) -> None:
    for language in LANGUAGES:
        texts = [example.text[language] for examples in corpus.values() for example in examples]
        assert len(set(texts)) == len(texts)


def test_sentences_look_like_sentences(corpus: Corpus) -> None:
    for example in corpus["train"]:
        for language in ("en", "de"):
            text = example.text[language]
            assert text[0].isupper()
            assert text[-1] in ".?"
            assert not any(flaw in text for flaw in ("  ", " ,", " .", ",,", ",.", ",?"))
        assert example.text["zh"][-1] in "。？"
        assert not any(character.isspace() or character.isascii() for character in example.text["zh"])
        assert 5 <= len(example.words["en"]) <= 26
    average = sum(len(example.words["en"]) for example in corpus["train"]) / len(corpus["train"])
    assert 9 <= average <= 13


def test_alignments_are_in_range_and_cover_most_words(corpus: Corpus) -> None:
    for example in corpus["train"][:1_000]:
        for source, target in (("en", "de"), ("de", "zh"), ("zh", "en")):
            alignment = example.alignment(source, target)
            assert alignment == sorted(set(alignment))
            sizes = len(alignment_tokens(example.text[source])), len(alignment_tokens(example.text[target]))
            assert all(0 <= first < sizes[0] and 0 <= second < sizes[1] for first, second in alignment)
            assert (sizes[0] - 1, sizes[1] - 1) in alignment  # sentence-final punctuation
            assert len({first for first, _ in alignment}) >= 0.6 * sizes[0]


def test_splits_keep_their_combinations(corpus: Corpus) -> None:
    for split, other in (("valid", "test"), ("test", "valid")):
        for example in corpus[split]:
            found = {split_of(combination) for combination in example.combinations}
            assert split in found
            assert other not in found
    assert all(split_of(one) == "train" for example in corpus["train"] for one in example.combinations)


def test_held_out_words_occur_in_training(corpus: Corpus) -> None:
    for language in LANGUAGES:
        known = {word for example in corpus["train"] for word in example.words[language]}
        for split in ("valid", "test"):
            unknown = {word for example in corpus[split] for word in example.words[language]} - known
            assert unknown == set()


def test_the_split_of_a_combination_never_changes() -> None:
    """The assignment is part of the corpus; expected values follow from the SHA-256 of "verb-object|lesen|book" etc."""
    read_book = Combination("verb-object", "lesen", "book")
    write_book = Combination("verb-object", "schreiben", "book")
    buy_apple = Combination("verb-object", "kaufen", "apple")
    assert [split_of(one) for one in (read_book, write_book, buy_apple)] == ["train", "valid", "test"]
    assert split_of_all([]) == split_of_all([read_book]) == "train"
    assert split_of_all([read_book, buy_apple]) == "test"
    assert split_of_all([write_book, buy_apple]) is None


def test_nobody_is_named_twice_in_a_sentence(corpus: Corpus) -> None:
    for example in corpus["train"]:
        names = [word.removesuffix("'s") for word in example.words["en"]]
        assert names.count("Anna") <= 1
        assert names.count("Peter") <= 1


def test_same_seed_same_corpus_and_other_seed_other_corpus() -> None:
    def texts(seed: int) -> list[dict[str, str]]:
        examples = generate(seed=seed, num_train=60, num_valid=5, num_test=5)
        return [dict(example.text) for split in examples.values() for example in split]

    assert texts(3) == texts(3)
    assert texts(3) != texts(4)


def test_corpus_does_not_depend_on_hash_randomisation() -> None:
    script = (
        "from translator.demo import generate\n"
        "corpus = generate(seed=2, num_train=40, num_valid=4, num_test=4)\n"
        "print([example.text['de'] for split in corpus.values() for example in split])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=environment(PYTHONHASHSEED=seed, PYTHONIOENCODING="utf-8"),
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_files(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "demo"
    write(folder, "zh", "en", seed=9, num_train=50, num_valid=5, num_test=6)
    expected = generate(seed=9, num_train=50, num_valid=5, num_test=6)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{split}.{suffix}" for split in ("train", "valid", "test") for suffix in ("zh", "en", "zh-en.align")
    )
    for split, examples in expected.items():
        for language in ("zh", "en"):
            content = (folder / f"{split}.{language}").read_bytes()
            assert content == "".join(example.text[language] + "\n" for example in examples).encode()
        lines = (folder / f"{split}.zh-en.align").read_text(encoding="utf-8").splitlines()
        pairs = [[tuple(map(int, link.split("-"))) for link in line.split(" ")] for line in lines]
        assert pairs == [example.alignment("zh", "en") for example in examples]


def test_the_examples_are_the_same_in_every_direction(tmp_path: Path) -> None:
    sizes = {"seed": 9, "num_train": 30, "num_valid": 3, "num_test": 3}
    write(tmp_path / "first", "en", "de", **sizes)
    write(tmp_path / "second", "de", "zh", **sizes)
    assert (tmp_path / "first" / "train.de").read_bytes() == (tmp_path / "second" / "train.de").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source": "fr"}, r"source='fr'.*\('en', 'de', 'zh'\)"),
        ({"target": ""}, r"target=''.*\('en', 'de', 'zh'\)"),
        ({"source": "de", "target": "de"}, r"target='de'.*\('en', 'de', 'zh'\)"),
        ({"num_train": 0}, "num_train=0"),
        ({"num_valid": -1}, "num_valid=-1"),
        ({"num_test": 0}, "num_test=0"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "demo", **arguments)
    assert not (tmp_path / "demo").exists()


def test_asking_for_too_much_says_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Monotonous(generator_module.SentenceSampler):
        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            self._repertoire = [super(Monotonous, self).sentence() for _ in range(200)]
            self._calls = 0

        def sentence(self) -> generator_module.Sentence:
            self._calls += 1
            return self._repertoire[self._calls % 200]

    monkeypatch.setattr(generator_module, "SentenceSampler", Monotonous)
    monkeypatch.setattr(generator_module, "_PATIENCE", 1_000)
    with pytest.raises(
        ValueError, match=r"num_train=500 is more than the grammar gave: 1\d\d distinct train sentences"
    ):
        generate(num_train=500, num_valid=1, num_test=1)
