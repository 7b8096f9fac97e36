"""API keys: who may use the server, if not everybody."""

import hmac
from pathlib import Path

from translator.errors import UserError

SHORTEST = 8  # characters


class ApiKeys:
    """The keys in a file; without any keys, everybody is accepted."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = [key.encode() for key in keys]

    @classmethod
    def load(cls, path: Path) -> "ApiKeys":
        """One key a line; blank lines and those that begin with # are skipped."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise UserError(
                f"--api-keys {path}: cannot be read ({reason}); give a file with a key on each line"
            ) from None
        keys = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not keys:
            raise UserError(f"--api-keys {path}: has no keys; write one on each line, or leave the option out")
        if any(len(key) < SHORTEST for key in keys):
            raise UserError(f"--api-keys {path}: has a key of fewer than {SHORTEST} characters; give longer ones")
        return cls(keys)

    @property
    def are_required(self) -> bool:
        return bool(self._keys)

    def accept(self, given: str | None) -> bool:
        """Compares with every key, in a time that reveals nothing about them."""
        if not self._keys:
            return True
        found = False
        for key in self._keys:
            found |= hmac.compare_digest(key, (given or "").encode("utf-8", "replace"))
        return found
