"""What holds for all tests, and for the commands that they start.

Every process computes in one thread: several of them run side by side, and threads of torch that wait for each other on
busy cores are many times slower than no threads at all. Ctrl-C is not ignored, as shells arrange for background jobs.
"""

import os
import signal

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is loaded
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
