"""The built-in back-ends, one module each; :mod:`solvers.registry` finds them."""
