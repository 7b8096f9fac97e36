from drill.lab import Lab

GOALS: dict[str, int] = {}


def scenario(lab: Lab, number: int) -> None: ...
