"""`python -m translator.serve` is `translate-serve`."""

import sys

from translator.serve.command import main

if __name__ == "__main__":
    sys.exit(main())
