"""Which queries a user asks for, before the schema is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from dualquery.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema import Schema
    from dualquery.queries.workload import Workload

DEFAULT_QUERIES = 100_000


@dataclass(frozen=True, kw_only=True)
class WorkloadRequest:
    """A public description of a workload; `build` makes the queries for a schema.

    Parameters
    ----------
    queries
        A number of random conjunctions, ``"all"`` for every cell of every marginal, the path of a
        file with a query a line, or a list of queries as texts; None for 100,000 random ones, or
        for all that differ where these are fewer, unless ``marginals`` is given.
    way
        Literals a query (k).
    signed
        Whether literals may be negated.
    seed
        Seed of the random choice. Public, and apart from the seed of the release.
    columns
        Names, positions or ranges of the columns that queries may use; None for all.
    marginals
        Instead of ``queries``: a number of random whole k-way marginals.
    max_cells
        With ``marginals``: the most cells a marginal may have; None for the number of rows.
    """

    queries: int | str | Path | Sequence[str] | None = None
    way: int = 3
    signed: bool = True
    seed: int = 0
    columns: Sequence[str | int] | str | None = None
    marginals: int | None = None
    max_cells: int | None = None

    def __post_init__(self) -> None:
        if self.way < 1:
            raise BadInputError(f"--way is {self.way}; a query needs at least 1 literal")
        texts = isinstance(self.queries, list | tuple)
        if isinstance(self.queries, bool) or not (
            texts or isinstance(self.queries, Integral | str | Path | None)
        ):
            raise BadInputError(
                f"queries is {self.queries!r}; give a number, 'all', a path or a list of texts"
            )
        listed = texts or (isinstance(self.queries, str | Path) and self.queries != "all")
        if isinstance(self.queries, int) and self.queries < 1:
            raise BadInputError(f"--queries is {self.queries}; ask for at least 1")
        if listed and (self.columns is not None or not self.signed):
            raise BadInputError(
                "--query-columns and --positive choose among generated queries, but "
                f"{'the list of queries' if texts else self.queries} lists its own; leave them out"
            )
        if self.marginals is not None and self.queries is not None:
            raise BadInputError(
                "--marginals and --queries are two ways to say what is asked; leave one of the two "
                "out"
            )
        if self.marginals is not None and self.marginals < 1:
            raise BadInputError(f"--marginals is {self.marginals}; ask for at least 1")
        if self.marginals is not None and not self.signed:
            raise BadInputError(
                "--positive does not go with --marginals: a whole marginal has every cell, those "
                "of the value 0 too; leave one of the two out"
            )
        if self.seed < 0:
            raise BadInputError(
                f"--workload-seed is {self.seed}; a whole number from 0 on is needed"
            )
        if self.max_cells is not None and (self.marginals is None or self.max_cells < 1):
            raise BadInputError("--max-cells goes with --marginals and is at least 1")

    def build(self, schema: Schema, n: int) -> Workload:
        """Make the queries.

        Raises
        ------
        BadInputError
            If the schema has too few columns or queries, or the file has a faulty line.
        """
        from dualquery.queries.files import read_queries
        from dualquery.queries.marginals import all_marginals, random_marginals
        from dualquery.queries.random import count_distinct, random_conjunctions
        from dualquery.queries.text import workload_of_texts

        domain = schema.domain
        columns = None if self.columns is None else schema.select(self.columns)
        if self.marginals is not None:
            cells = n if self.max_cells is None else self.max_cells
            return random_marginals(domain, self.marginals, self.way, cells, self.seed, columns)
        if self.queries == "all":
            return all_marginals(domain, self.way, self.signed, columns)
        if isinstance(self.queries, str | Path):
            return read_queries(self.queries, schema)
        if isinstance(self.queries, Sequence):
            if not self.queries or not all(isinstance(text, str) for text in self.queries):
                raise BadInputError(
                    "queries is a list; give it texts such as 'age=30-35 & sex=Male'"
                )
            return workload_of_texts(self.queries, schema, "a list", "query {}".format)
        if self.queries is None:
            m = min(DEFAULT_QUERIES, count_distinct(domain, self.way, self.signed, columns))
        else:
            m = int(self.queries)
        return random_conjunctions(domain, m, self.way, self.signed, self.seed, columns)
