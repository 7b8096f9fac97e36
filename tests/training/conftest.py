"""Makes `training_toys` importable: also the processes that some tests start import it, by its folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
