"""The competitors of `bench_decoding.py`, each in a process that lives for the whole benchmark and waits for its turns.

    python scripts/decoding_competitors.py NAME WAY RUN FOLDER

FOLDER holds `sources.json` and the model `converted` for CTranslate2. Each line of standard input asks for a turn,
`{"beam_size": 5, "sizes": [2048, 4096], "lines": 300}`, and is answered by the seconds for each of the batch sizes.
"""

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

OURS, FLOAT32, INT8 = "translator", "CTranslate2 float32", "CTranslate2 int8"
ENGINE, ENGINE_INT8 = "engine float32", "engine int8"  # `translate --engine ctranslate2`
MAX_LENGTH = 200  # pieces per output
Decode = Callable[[int, int], list[list[int]]]  # source tokens per batch and number of lines to their outputs


class IdTokenizer:
    """Texts are ids separated by spaces, so that tokenisation takes no time."""

    def __init__(self, target_vocab_size: int) -> None:
        self.target_vocab_size = target_vocab_size

    def encode_source(self, texts: list[str]) -> list[list[int]]:
        return [[int(piece) for piece in text.split()] for text in texts]

    encode_target = encode_source

    def decode_target(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [" ".join(map(str, sentence)) for sentence in ids]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return [str(piece) for piece in ids]

    target_pieces = source_pieces


class Competitor:
    """The process of a competitor, and the files with its latest outputs."""

    def __init__(self, name: str, way: str, model: Path, folder: Path) -> None:
        self.name, self.way = name, way
        # The default number of threads of both CTranslate2 and torch.
        environment = {**os.environ, "OMP_NUM_THREADS": way.split("x")[1]}
        command = [sys.executable, __file__, name, way, str(model), str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def turn(self, beam_size: int, sizes: Sequence[int], num_lines: int) -> list[float]:
        """The seconds that the first lines take with each batch size."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        turn = {"beam_size": beam_size, "sizes": list(sizes), "lines": num_lines}
        print(json.dumps(turn), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise ChildProcessError(f"{self.name} has ended with exit code {self._process.wait()}")
        seconds: list[float] = json.loads(answer)
        return seconds

    def close(self) -> None:
        self._process.communicate()


def outputs_file(folder: Path, competitor: str, beam_size: int) -> Path:
    return folder / f"{competitor} {beam_size}.json"


def our_decoder(
    model: Path, sources: list[list[int]], beam_size: int, num_threads: int, engine_type: str | None = None
) -> Decode:
    """Our own search, or our engine in float32 or int8."""
    import torch

    from translator.decoding.line_translator import LineTranslator
    from translator.engines.ctranslate2 import CTranslate2Engine
    from translator.kernels.allocator import keep_memory
    from translator.runs.loading import load_run
    from translator.schema.decode import SearchOptions, Stop

    torch.set_num_threads(num_threads)
    keep_memory(threads_share=engine_type is None)  # like Translator.keep_memory
    gc.freeze()
    run = load_run(model, torch.device("cpu"))
    translator = LineTranslator(
        run.model,
        IdTokenizer(run.tokenizer.target_vocab_size),
        # With the stopping rule of CTranslate2, and its shortest output of one piece.
        options=SearchOptions(beam_size=beam_size, stop=Stop.first, max_length_ratio=0, max_length_extra=MAX_LENGTH),
        engine=CTranslate2Engine(model, run, int8=engine_type == "int8") if engine_type else None,
    )
    texts = [" ".join(map(str, source)) for source in sources]

    def decode(batch_tokens: int, num_lines: int) -> list[list[int]]:
        translator.options = translator.options.changed(batch_tokens=batch_tokens)
        return [[int(piece) for piece in text.split()] for text in translator.translate(texts[:num_lines])]

    return decode


def their_decoder(
    folder: Path, compute_type: str, sources: list[list[int]], beam_size: int, workers: int, num_threads: int
) -> Decode:
    import ctranslate2

    engine = ctranslate2.Translator(
        str(folder), compute_type=compute_type, inter_threads=workers, intra_threads=num_threads
    )
    pieces = [[str(piece) for piece in source[:-1]] for source in sources]  # EOS is added by CTranslate2

    def decode(batch_tokens: int, num_lines: int) -> list[list[int]]:
        results = engine.translate_batch(
            pieces[:num_lines],
            beam_size=beam_size,
            length_penalty=1,
            max_decoding_length=MAX_LENGTH,
            max_input_length=0,
            max_batch_size=batch_tokens,
            batch_type="tokens",
        )
        return [[int(piece) for piece in result.hypotheses[0]] for result in results]

    return decode


def make_decoder(name: str, way: str, model: Path, folder: Path, sources: list[list[int]], beam_size: int) -> Decode:
    workers, num_threads = map(int, way.split("x"))
    if name == OURS:
        return our_decoder(model, sources, beam_size, workers * num_threads)
    if name in (ENGINE, ENGINE_INT8):
        return our_decoder(model, sources, beam_size, workers * num_threads, name.split()[-1])
    return their_decoder(folder / "converted", name.split()[-1], sources, beam_size, workers, num_threads)


def take_turns(name: str, way: str, model: Path, folder: Path) -> None:
    """Answers until standard input ends."""
    sources = json.loads((folder / "sources.json").read_text())
    decoders: dict[int, Decode] = {}
    for line in sys.stdin:
        turn = json.loads(line)
        beam_size, sizes, num_lines = turn["beam_size"], turn["sizes"], turn["lines"]
        if beam_size not in decoders:
            decoders[beam_size] = make_decoder(name, way, model, folder, sources, beam_size)
            decoders[beam_size](sizes[0], num_lines)  # warm-up
        seconds = []
        for batch_tokens in sizes:
            start = time.perf_counter()
            outputs = decoders[beam_size](batch_tokens, num_lines)
            seconds.append(time.perf_counter() - start)
        outputs_file(folder, name, beam_size).write_text(json.dumps(outputs))
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    take_turns(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
