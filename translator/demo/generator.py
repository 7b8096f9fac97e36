"""Generates the parallel corpus: distinct sentences, split by reserved word combinations."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from translator.demo import chinese, english, german
from translator.demo.alignment import Labels, Token, align, labels_per_word, to_pharaoh
from translator.demo.combinations import Combination, combinations_of, split_of_all
from translator.demo.lexicon_nouns import NAMES
from translator.demo.sentence_sampler import SentenceSampler
from translator.demo.syntax import Sentence
from translator.files.atomic import write_text
from translator.languages import alignment_tokens

LANGUAGES: tuple[str, ...] = ("en", "de", "zh")
SPLITS: tuple[str, ...] = ("train", "valid", "test")

_LINEARISERS = {"en": english.linearise, "de": german.linearise, "zh": chinese.linearise}
_CLOSING_PUNCTUATION = frozenset(",.?")
_NAMES = frozenset(name.english for name in NAMES)
# English sentences have 4 to 25 tokens plus the final punctuation mark.
_SHORTEST, _LONGEST = 5, 26
# Sampling stops after this many sentences in a row without a new one.
_PATIENCE = 50_000
# Validation and test sentences are selected from this many times as many candidates.
_SURPLUS = 1.5


@dataclass(frozen=True, slots=True)
class Example:
    """One sentence in all languages: raw text, its alignment tokens, and the labels to align them."""

    sentence: Sentence
    text: Mapping[str, str]
    words: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, tuple[Labels, ...]]
    combinations: tuple[Combination, ...]

    def alignment(self, source: str, target: str) -> list[tuple[int, int]]:
        """Sorted pairs of positions in the `alignment_tokens` of source and target text."""
        check_language("source", source)
        check_language("target", target)
        return align(self.labels[source], self.labels[target])


def check_language(argument: str, language: str) -> None:
    """Raise ValueError for a language that is not in the corpus."""
    if language not in LANGUAGES:
        raise ValueError(f"{argument}={language!r} is not a language of the demo corpus; choose one of {LANGUAGES}")


def render(tokens: list[Token], language: str) -> str:
    """The raw text of linearised tokens."""
    if language == "zh":
        return "".join(token.text for token in tokens)
    pieces: list[str] = []
    for token in tokens:
        if pieces and token.text not in _CLOSING_PUNCTUATION:
            pieces.append(" ")
        pieces.append(token.text)
    text = "".join(pieces)
    return text[0].upper() + text[1:]


def realise(sentence: Sentence, combinations: tuple[Combination, ...] | None = None) -> Example:
    """Linearise a sentence into all languages."""
    texts, words, labels = {}, {}, {}
    for language, linearise in _LINEARISERS.items():
        tokens = linearise(sentence)
        text = texts[language] = render(tokens, language)
        words[language] = tuple(alignment_tokens(text))
        labels[language] = labels_per_word(tokens, split_characters=language == "zh")
        if len(words[language]) != len(labels[language]):
            raise RuntimeError(f"tokens {[token.text for token in tokens]} do not agree with the text {text!r}")
    return Example(sentence, texts, words, labels, combinations_of(sentence) if combinations is None else combinations)


class _Collector:
    """Collects distinct examples until every split is full."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        surplus = {split: size if split == "train" else int(size * _SURPLUS) + 10 for split, size in sizes.items()}
        self._sizes = sizes
        self._capacity = surplus
        self._examples: dict[str, list[Example]] = {split: [] for split in SPLITS}
        self._seen: dict[str, set[str]] = {language: set() for language in LANGUAGES}

    def wants(self, split: str) -> bool:
        """Whether the split has room for another example."""
        return len(self._examples[split]) < self._capacity[split]

    def is_complete(self) -> bool:
        """Whether every split is full."""
        return not any(self.wants(split) for split in SPLITS)

    def add(self, split: str, example: Example) -> bool:
        """Keep the example unless its text in any language has occurred before."""
        if any(example.text[language] in self._seen[language] for language in LANGUAGES):
            return False
        for language in LANGUAGES:
            self._seen[language].add(example.text[language])
        self._examples[split].append(example)
        return True

    def corpus(self) -> dict[str, list[Example]]:
        """The splits at their final sizes, preferring held-out sentences whose words all occur in training."""
        for split, size in self._sizes.items():
            found = len(self._examples[split])
            if found < size:
                raise ValueError(
                    f"num_{split}={size} is more than the grammar gave: "
                    f"{found} distinct {split} sentences were found before new ones became too rare"
                )
        known = {
            language: {word for example in self._examples["train"] for word in example.words[language]}
            for language in LANGUAGES
        }
        corpus = {"train": self._examples["train"]}
        for split in SPLITS[1:]:
            candidates = self._examples[split]
            unknown = [any(not known[name].issuperset(one.words[name]) for name in LANGUAGES) for one in candidates]
            ranking = sorted(range(len(candidates)), key=unknown.__getitem__)  # stable sort: known words first
            corpus[split] = [candidates[index] for index in sorted(ranking[: self._sizes[split]])]
        return corpus


def _reads_well(example: Example) -> bool:
    """Whether the sentence has a reasonable length and does not repeat a name ("Anna visited Anna")."""
    words = example.words["en"]
    names = [word for word in words if word.removesuffix("'s") in _NAMES]
    return _SHORTEST <= len(words) <= _LONGEST and len(names) == len({word.removesuffix("'s") for word in names})


def generate(
    seed: int = 1, num_train: int = 20_000, num_valid: int = 1_000, num_test: int = 1_000
) -> dict[str, list[Example]]:
    """Generate the corpus; the same arguments always produce the same examples in the same order."""
    sizes = {"train": num_train, "valid": num_valid, "test": num_test}
    for split, size in sizes.items():
        if size <= 0:
            raise ValueError(f"num_{split}={size} is not a valid number of sentences; it must be 1 or more")
    sampler, collector = SentenceSampler(seed), _Collector(sizes)
    failures = 0
    while failures < _PATIENCE and not collector.is_complete():
        failures += 1
        sentence = sampler.sentence()
        combinations = combinations_of(sentence)
        destination = split_of_all(combinations)
        if destination and collector.wants(destination):
            example = realise(sentence, combinations)
            if _reads_well(example) and collector.add(destination, example):
                failures = 0
    return collector.corpus()


def write(
    folder: Path,
    source: str = "en",
    target: str = "de",
    *,
    seed: int = 1,
    num_train: int = 20_000,
    num_valid: int = 1_000,
    num_test: int = 1_000,
) -> None:
    """Write {train,valid,test}.{source,target} and the alignments .{source}-{target}.align to the folder."""
    check_language("source", source)
    check_language("target", target)
    if source == target:
        raise ValueError(f"target={target!r} is also the source language; choose two different ones of {LANGUAGES}")
    corpus = generate(seed, num_train, num_valid, num_test)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for split, examples in corpus.items():
        texts = {
            source: [example.text[source] for example in examples],
            target: [example.text[target] for example in examples],
            f"{source}-{target}.align": [to_pharaoh(example.alignment(source, target)) for example in examples],
        }
        for ending, lines in texts.items():
            write_text(folder / f"{split}.{ending}", "".join(f"{line}\n" for line in lines))
