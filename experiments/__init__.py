"""The papers' figures and the project's own measurements: ``python -m experiments NAME``.

One file an experiment, each a `Recipe` for the shared runner in `experiments.harness`: the settings
of its runs, one run, a summary, what is expected, a picture. Every experiment has a form that takes
seconds (``--quick``) and is not private: the tables are public ones. ``all`` makes one HTML page of
them. ``benchmarks`` measures speed.
"""
