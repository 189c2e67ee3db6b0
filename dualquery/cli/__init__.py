"""The command line. Only light imports here: heavy libraries load when a command needs them."""

import os

# Idle threads of OpenBLAS spin 2^26 cycles before they sleep, after each call; the least is 2^4.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
