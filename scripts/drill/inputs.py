"""Fuzzed inputs of `translate`: as many lines come out as went in, in order, whatever is translated together."""

from pathlib import Path

from drill.commands import translate_command
from drill.lab import Lab
from drill.texts import nasty_line

GOALS = {"inputs": 500}
INVALID = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80")


def scenario(lab: Lab, number: int) -> None:
    lab.counts["inputs"] += 1
    lines = [nasty_line(lab.dice).encode() for _ in range(lab.dice.choice([0, 1, 2, 8, 25]))]
    is_valid = not lines or lab.dice.random() < 0.8
    if not is_valid:
        place = lab.dice.randrange(len(lines))
        lines[place] += lab.dice.choice(INVALID)
    # A carriage return belongs to the end of a line only where a line feed follows.
    has_final_end = bool(lines) and (lab.dice.random() < 0.7 or lines[-1].endswith(b"\r"))
    content = b"\n".join(lines) + (b"\n" if has_final_end else b"")
    source = lab.folder / "input.txt"
    source.write_bytes(content)
    replace = [] if lab.dice.random() < 0.5 and not is_valid else ["--errors", "replace"]
    outputs = _translate(lab, source, "all", replace)
    if outputs is None:
        return
    if not lab.require(is_valid or bool(replace), "invalid UTF-8 was translated without a warning"):
        return
    # A last line without a line feed is a line too, and is given one.
    num_in, num_out = content.count(b"\n") + (content[-1:] not in (b"\n", b"")), outputs.count(b"\n")
    lab.require(num_in == num_out, f"{num_in} lines in, {num_out} out")
    batch = ["--batch-tokens", str(lab.dice.choice([1, 7, 50, 100_000]))]
    again = _translate(lab, source, "again", [*replace, *batch])
    lab.require(again == outputs, f"other translations with {' '.join(batch)}")
    if len(lines) > 2:
        _translate_some(lab, lines, outputs, replace)


def _translate_some(lab: Lab, lines: list[bytes], outputs: bytes, replace: list[str]) -> None:
    """Some of the lines, in another order, must have the translations they had among all."""
    chosen = lab.dice.sample(range(len(lines)), lab.dice.randint(1, len(lines)))
    source = lab.folder / "some.txt"
    source.write_bytes(b"".join(lines[line] + b"\n" for line in chosen))
    translated = outputs.split(b"\n")
    found = _translate(lab, source, "some", replace)
    expected = b"".join(translated[line] + b"\n" for line in chosen)
    lab.require(found == expected, f"lines {chosen} translated alone differ from their translations among all lines")


def _translate(lab: Lab, source: Path, name: str, options: list[str]) -> bytes | None:
    output = lab.folder / f"{name}.out"
    model = str(lab.shared / "transformer" / "run")
    ending = lab.run(translate_command([str(source), "-o", str(output), "--model", model, "--quiet", *options]))
    if ending.fault():
        return None
    if ending.code:
        refusal = ending.refusal()
        lab.require(refusal is not None and source.name in refusal, "not one line that names the input", ending)
        lab.counts["inputs refused"] += 1
        lab.require("replace" not in options, "refused in spite of --errors replace", ending)
        return None
    return output.read_bytes()
