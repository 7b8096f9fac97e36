"""Drills: the program is killed, starved, damaged and fed garbage, thousands of times; `make drill` runs them all."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when `datasets` is imported: no drill may wait for the network
