"""Output formats, and output files that have their final name only once they are complete."""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from translator.decoding.alignment import to_pharaoh
from translator.decoding.interfaces import Output, Translation
from translator.errors import UserError
from translator.files.atomic import publish, write_json
from translator.files.destinations import Destination, opened_directly, replaced_file, write_directly
from translator.files.explain import explain_write_errors
from translator.files.lines import Line

SEPARATOR = " ||| "
PROGRESS_FORMAT = 1


@dataclass(frozen=True)
class Format:
    """How the translation of a line is written: `text`, `tsv` or `jsonl`.

    - text: the translation, followed by score and alignment where asked for, with ` ||| ` between them. An n-best
      list has a line for each translation, which starts with the number of the input line, counted from 0, as Moses
      writes it.
    - tsv: line, rank, score, translation and alignment in columns under a heading.
    - jsonl: an object for each input line.
    """

    name: str = "text"
    num_best: int = 1
    scores: bool = False
    alignments: bool = False

    @property
    def heading(self) -> str:
        if self.name != "tsv":
            return ""
        columns = ["line", "rank", "score", "translation", "alignment"]
        wanted = [True, self.num_best > 1, self.scores, True, self.alignments]
        return "\t".join(column for column, want in zip(columns, wanted, strict=True) if want) + "\n"

    def write(self, number: int, line: Line, translation: Translation) -> str:
        """The text for input line `number`, counted from 0, with its line ends."""
        outputs = translation.outputs[: self.num_best]
        if self.name == "jsonl":
            return json.dumps(self._object(number, line, outputs), ensure_ascii=False) + line.end
        write = self._text if self.name == "text" else self._row
        return "".join(write(number, rank, output) + line.end for rank, output in enumerate(outputs))

    def _text(self, number: int, rank: int, output: Output) -> str:
        fields = [str(number)] if self.num_best > 1 else []
        fields.append(one_line(output.text))
        fields += [f"{output.score:.4f}"] if self.scores else []
        fields += [to_pharaoh(output.alignment or [])] if self.alignments else []
        return SEPARATOR.join(fields)

    def _row(self, number: int, rank: int, output: Output) -> str:
        fields = [str(number + 1)]
        fields += [str(rank + 1)] if self.num_best > 1 else []
        fields += [f"{output.score:.4f}"] if self.scores else []
        fields.append(one_line(output.text).replace("\t", " "))
        fields += [to_pharaoh(output.alignment or [])] if self.alignments else []
        return "\t".join(fields)

    def _object(self, number: int, line: Line, outputs: Sequence[Output]) -> dict[str, Any]:
        best = [self._output(output) for output in outputs]
        description: dict[str, Any] = {"line": number + 1, "source": line.text, **best[0]}
        return description | ({"nbest": best} if self.num_best > 1 else {})

    def _output(self, output: Output) -> dict[str, Any]:
        description: dict[str, Any] = {"translation": output.text}
        if self.scores:
            description |= {"score": output.score, "normalized_score": output.normalized_score}
            description |= {"model_score": output.model_score} if output.model_score is not None else {}
        if self.alignments:
            description["alignment"] = to_pharaoh(output.alignment or [])
        return description


def one_line(text: str) -> str:
    """Without line ends, which a model that spells in bytes can write: they would shift all lines after them."""
    return text.replace("\r", " ").replace("\n", " ")


def working_files(path: Path) -> tuple[Path, Path]:
    """The files beside an incomplete output: the part that has been written, and the record of its progress."""
    target = replaced_file(path)
    return target.with_name(target.name + ".partial"), target.with_name(target.name + ".partial.json")


class DirectOutput:
    """The standard output, a device or a pipe: written as it comes, and never resumed."""

    num_lines = 0
    resumed = False

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self.stack = ExitStack()
        self.file = self.stack.enter_context(opened_directly(destination))

    def write(self, text: str, num_lines: int, input_digest: str) -> None:
        write_directly(self.file, text, self.destination)

    def finish(self) -> None:
        self.close()

    def close(self) -> None:
        self.stack.close()


class OutputFile:
    """A file that gets its name when it is complete; until then it is NAME.partial, with a record of its progress.

    A symbolic link stays, and its target is the file that is replaced.
    """

    def __init__(self, path: Path, settings: dict[str, Any], resume: bool) -> None:
        """A partial file is continued only if it was written with the same settings."""
        self.path = replaced_file(path)
        self.partial, self.progress_file = working_files(path)
        self.settings = settings
        self.num_lines = 0  # of the input
        self.input_digest = hashlib.sha256().hexdigest()
        num_bytes = 0
        if resume and self.progress_file.exists() and self.partial.exists():
            num_bytes = self._read_progress()
        self.resumed = self.num_lines > 0
        with explain_write_errors(path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file: BinaryIO = self.partial.open("r+b" if num_bytes else "wb")
            self.file.truncate(num_bytes)
            self.file.seek(num_bytes)

    def _read_progress(self) -> int:
        try:
            progress = json.loads(self.progress_file.read_text(encoding="utf-8"))
            fitting = progress["format"] == PROGRESS_FORMAT and progress["settings"] == self.settings
            num_bytes, self.num_lines = int(progress["num_bytes"]), int(progress["num_lines"])
            self.input_digest = str(progress["input_sha256"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.progress_file}: cannot be read ({error}); start again without --resume") from None
        if not fitting:
            raise UserError(
                f"--resume: {self.partial} was written with another model or other options; give the same ones, or "
                "start again without --resume"
            )
        if self.partial.stat().st_size < num_bytes:
            raise UserError(f"--resume: {self.partial} is shorter than it was; start again without --resume")
        return num_bytes

    def check_input(self, digest: str) -> None:
        """Refuses to continue if the part of the input that has been translated has changed."""
        if digest != self.input_digest:
            raise UserError(
                f"--resume: the first {self.num_lines} lines of the input are not those that {self.partial} was made "
                "from; start again without --resume"
            )

    def write(self, text: str, num_lines: int, input_digest: str) -> None:
        """Appends the translation of `num_lines` input lines; after a crash it is there in full or not at all."""
        with explain_write_errors(self.partial):
            self.file.write(text.encode("utf-8", "replace"))
            self.file.flush()
            os.fsync(self.file.fileno())
        self.num_lines += num_lines
        progress = {
            "format": PROGRESS_FORMAT,
            "num_lines": self.num_lines,
            "num_bytes": self.file.tell(),
            "input_sha256": input_digest,
            "settings": self.settings,
        }
        with explain_write_errors(self.progress_file):
            write_json(self.progress_file, progress)

    def finish(self) -> None:
        with explain_write_errors(self.path):
            self.file.close()
            publish(self.partial, self.path)
            self.progress_file.unlink(missing_ok=True)

    def close(self) -> None:
        """Leaves the partial file for `--resume`, unless it is empty."""
        if not self.file.closed:
            with suppress(OSError):  # already reported
                self.file.close()
            if self.num_lines == 0:
                self.partial.unlink(missing_ok=True)
                self.progress_file.unlink(missing_ok=True)
