"""Answers to requests that are not fulfilled."""


class Refusal(Exception):  # noqa: N818 - an answer
    """A request is answered with this status and one line that says why. The line never repeats text to translate."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after = status, message, retry_after

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
