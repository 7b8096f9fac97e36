"""Attention as kernel regression (Nadaraya 1964, Watson 1964): a minimal example of attention.

Noisy samples of a function are the keys x and values y. For a new query x, attention pooling returns the mean of the
values, weighted by how close their keys are. Three kernels are compared: infinitely wide (the plain average), width one
(no parameters), and the width that best predicts each example from the others (one trained parameter).

    python scripts/kernel_regression.py --output runs/kernel_regression.png
"""

import argparse
from pathlib import Path

import torch

from translator.atlas.regression import (
    LARGEST_X,
    NOISE,
    NUM_EXAMPLES,
    gaussian,
    leave_one_out_loss,
    make_examples,
    train_width,
    true_function,
)
from translator.attention.pooling import attention_pooling
from translator.plots.kernel_regression import Regression, draw_kernel_regression


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--output", type=Path, default=Path("runs/kernel_regression.png"), help="the picture (%(default)s)"
    )
    parser.add_argument("--examples", type=int, default=NUM_EXAMPLES, help="number of examples (%(default)s)")
    parser.add_argument("--noise", type=float, default=NOISE, help="standard deviation of the noise (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the examples (%(default)s)")
    arguments = parser.parse_args()
    if arguments.examples < 2:
        parser.error(f"--examples {arguments.examples}: at least 2 are needed, each being predicted from the others")

    x, y = make_examples(arguments.examples, arguments.noise, torch.Generator().manual_seed(arguments.seed))
    queries = torch.linspace(0, LARGEST_X, 200).unsqueeze(1)  # (T, 1)
    scores = {
        "average pooling": gaussian(float("inf")),
        "non-parametric": gaussian(1.0),
        "trained": train_width(x, y),
    }
    regressions = []
    with torch.no_grad():
        for name, score in scores.items():
            predictions, weights = attention_pooling(score, queries, x, y)
            width = 1 / score.inverse_width.abs().item() if score.inverse_width.item() else float("inf")
            loss = leave_one_out_loss(score, x, y).item()
            error = (predictions - true_function(queries)).square().mean().item()
            print(f"{name:16} width {width:5.2f}   leave-one-out loss {loss:.3f}   error against the truth {error:.3f}")
            title = f"{name}, width {width:.2f}".replace("width inf", "width ∞")
            regressions.append(Regression(title, predictions.squeeze(1).numpy(), weights.numpy()))
    figure = draw_kernel_regression(
        example_x=x.squeeze(1).numpy(),
        example_y=y.squeeze(1).numpy(),
        query_x=queries.squeeze(1).numpy(),
        truth=true_function(queries).squeeze(1).numpy(),
        regressions=regressions,
    )
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(arguments.output, dpi=120)
    print(f"drawn to {arguments.output}")


if __name__ == "__main__":
    main()
