"""What a parser is, to those who spoil its inputs."""

import gzip
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualquery.runtime.errors import BadInputError
from solvers.errors import SolverError
from tests.hostile.mutation import Mutator, spliced, zipped

DOCUMENTED = (BadInputError, SolverError)  # what a parser may raise


@dataclass(frozen=True)
class Parser:
    """One thing that reads: valid inputs, what spoils one, what raises `DOCUMENTED` or accepts."""

    examples: Callable[[], Sequence[bytes]]
    mutate: Mutator
    read: Callable[[bytes, Path], None]

    def input(self, examples: Sequence[bytes], seed: str) -> bytes:
        chance = random.Random(seed)
        return self.mutate(chance, spliced(chance, examples))


def texts(*texts: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [text.encode() for text in texts]


def zipped_parser(
    examples: Callable[[], Sequence[bytes]],
    mutate: Mutator,
    read: Callable[[bytes, Path], None],
    packing: Any = gzip,
) -> Parser:
    return Parser(lambda: [packing.compress(x) for x in examples()], zipped(mutate, packing), read)
