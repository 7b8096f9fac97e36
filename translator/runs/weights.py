"""A model's weights as a flat dictionary of tensors, each stored once, in files that carry their own checksum."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from translator.errors import UserError
from translator.files.atomic import atomic_file
from translator.files.explain import explain_damage

_CHECKSUM = "sha256"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], **details: str) -> None:
    """Writes a safetensors file; raises OSError if it cannot be written.

    Its metadata are the `details`, the checksum of the tensors, and the format that other readers expect.
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"format": "pt", **details}
    try:
        with atomic_file(path) as temporary:
            save_file(plain, temporary, metadata | {_CHECKSUM: _checksum(plain, metadata)})
            _sort_metadata(temporary)
    except SafetensorError as error:  # safetensors reports a full disk in its own way
        raise OSError(f"{path}: {error}") from error


def read_tensors(path: Path, *, needs_checksum: bool) -> dict[str, Tensor]:
    """The tensors of a safetensors file, refused if they are not the ones that were written.

    Files of earlier versions have no checksum; they are accepted unless the file `needs_checksum`.
    """
    return _read(path, needs_checksum)[0]


def read_tensors_and_details(path: Path, *, needs_checksum: bool) -> tuple[dict[str, Tensor], dict[str, str]]:
    return _read(path, needs_checksum)[:2]


def read_tensors_and_checksum(path: Path, *, needs_checksum: bool) -> tuple[dict[str, Tensor], str]:
    """The checksum is that of the tensors returned, whatever has happened to the file since."""
    tensors, _, checksum = _read(path, needs_checksum)
    return tensors, checksum


def _read(path: Path, needs_checksum: bool) -> tuple[dict[str, Tensor], dict[str, str], str]:
    with explain_damage(path, SafetensorError), safe_open(path, "pt") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        expected = metadata.pop(_CHECKSUM, None)
        if expected is None and needs_checksum:
            raise ValueError("its checksum is missing")
        checksum = _checksum(tensors, metadata)
        if expected not in (None, checksum):
            raise ValueError("the weights do not match their checksum")
    return tensors, metadata, checksum


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """A SHA-256 of the metadata and of the names, dtypes, shapes and bytes of tensors that are on the CPU."""
    digest = hashlib.sha256(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _sort_metadata(path: Path) -> None:
    """Sorts the metadata, which safetensors writes in random order, so that equal weights give equal files."""
    with path.open("r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        assert len(text) <= size, "only the order changes"
        file.seek(8)
        file.write(text.ljust(size))


def collect_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every persistent tensor under the first of its names: tied matrices are one matrix."""
    weights, seen = {}, set()
    for name, tensor in model.state_dict().items():
        place = (tensor.data_ptr(), tensor.shape, tensor.stride())
        if tensor.numel() == 0 or place not in seen:
            seen.add(place)
            weights[name] = tensor
    return weights


@torch.no_grad()
def restore_weights(model: nn.Module, weights: dict[str, Tensor], origin: str) -> None:
    """Copies stored weights into the model; `origin` is the file named in a message about mismatches."""
    own = collect_weights(model)
    differences = [f"{name} is missing" for name in own.keys() - weights.keys()]
    differences += [f"{name} is unknown" for name in weights.keys() - own.keys()]
    differences += [
        f"{name} has shape {tuple(weights[name].shape)}, not {tuple(own[name].shape)}"
        for name in own.keys() & weights.keys()
        if weights[name].shape != own[name].shape
    ]
    if differences:
        shown = "; ".join(sorted(differences)[:3]) + ("; …" if len(differences) > 3 else "")
        raise UserError(
            f"{origin}: these are weights of another model ({shown}); give the configuration they belong to"
        )
    for name, tensor in own.items():
        tensor.copy_(weights[name])


def average_weights(checkpoints: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each tensor, summed in float64 (Vaswani et al. 2017, section 6.1: averaging checkpoints)."""
    sums: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for weights in checkpoints:
        count += 1
        for name, tensor in weights.items():
            dtypes[name] = tensor.dtype
            sums[name] = sums[name] + tensor.double() if name in sums else tensor.double()
    return {name: (total / count).to(dtypes[name]) for name, total in sums.items()}
