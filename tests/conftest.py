"""Every test process computes in one thread: several of them run side by side, and threads of torch that wait for each
other on busy cores are many times slower than no threads at all."""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded, and for the commands that tests start
