"""The number of 1s of a machine word, as one instruction of the processor."""
# ruff: noqa: ARG001 - Numba prescribes the parameters of an intrinsic.

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.extending import intrinsic


def _popcount(typing_context: Any, word: Any) -> Any:
    """Return the number of 1s of a uint64, as a uint64 (for use inside compiled code)."""
    if word != types.uint64:
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


# Compiled code passes the word only, which the type of an intrinsic does not tell.
popcount: Any = intrinsic(_popcount)
