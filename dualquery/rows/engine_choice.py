"""Which engine the operator asks for; light, so that options are checked before all else."""

from __future__ import annotations

from dataclasses import dataclass

from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import RUN, option

ENGINES = ("auto", "memory", "stream", "dask")


@dataclass(frozen=True, kw_only=True)
class EngineChoice:
    """Options of `dualquery.rows.engines.Engine`, checked as far as possible without a table."""

    name: str = option(
        "auto",
        f"How rows are read: {', '.join(ENGINES[:-1])} or {ENGINES[-1]}.",
        RUN,
        name="engine",
        attempt=True,
    )
    scheduler: str | None = option(None, "Address of a Dask scheduler.", RUN, attempt=True)

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise BadInputError(f"--engine is {self.name!r}; give one of {', '.join(ENGINES)}")
        if self.name == "dask" and self.scheduler is None:
            raise BadInputError("--engine dask needs the address of a scheduler: --scheduler")
        if self.name != "dask" and self.scheduler is not None:
            raise BadInputError(f"--scheduler goes with --engine dask, not {self.name}")
