"""What a user asks for: a workload and a budget, checked as far as possible without a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.data.units import Unit, Weight
from dualquery.mechanisms.protocol import Budget, Mechanism
from dualquery.privacy.accountants.choice import choices
from dualquery.privacy.budget import check_budget, check_ranges, default_delta
from dualquery.privacy.events import Event
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.generate.frequent import Frequent, FrequentItems
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.row_count import RowCount, bought_epsilon, buy_row_count
from dualquery.rows.protocol import Rows
from dualquery.runtime.errors import BadInputError

if TYPE_CHECKING:
    from dualquery.data.schema.protocol import Schema
    from dualquery.queries.conjunctions import Workload

DEFAULT_QUERIES = 100_000
LARGEST_ROWS = 10**12


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
        Instead of ``queries``: a number of random whole k-way marginals, or ``"all"`` of them.
    max_cells
        With a number of marginals: the most cells one may have; None for the number of rows.
    target
        Instead of ``queries``: a column that models will predict. The queries are then all cells of
        its marginals with two other columns, of which all 2-way marginals are sums.
    items
        Instead of ``queries``: which items are frequent, ``"top:100"`` or ``"share>=0.01"``. The
        queries are then all positive conjunctions of ``way`` such items; which these are, the
        release finds out (`dualquery.queries.generate.frequent`).
    means
        Numeric columns whose means are bought besides, for a tenth of epsilon in all: names,
        positions or ranges (see `dualquery.releases.means`); None for none.
    """

    queries: int | str | Path | Sequence[str] | None = None
    way: int = 3
    signed: bool = True
    seed: int = 0
    columns: Sequence[str | int] | str | None = None
    marginals: int | str | None = None
    max_cells: int | None = None
    target: str | int | None = None
    items: str | None = None
    means: Sequence[str | int] | str | None = None

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
        if isinstance(self.marginals, str) and self.marginals != "all":
            raise BadInputError(f"--marginals is {self.marginals!r}; give a number, or 'all'")
        if isinstance(self.marginals, int) and self.marginals < 1:
            raise BadInputError(f"--marginals is {self.marginals}; ask for at least 1")
        if self.marginals is not None and not self.signed:
            raise BadInputError(
                "--positive does not go with --marginals: a whole marginal has every cell, those "
                "of the value 0 too; leave one of the two out"
            )
        if self.target is not None:
            self._check_target()
        if self.items is not None:
            self._check_items(self.items)
        if self.seed < 0:
            raise BadInputError(
                f"--workload-seed is {self.seed}; a whole number from 0 on is needed"
            )
        if self.max_cells is not None and (self.marginals in (None, "all") or self.max_cells < 1):
            raise BadInputError("--max-cells goes with a number of --marginals and is at least 1")

    def _check_target(self) -> None:
        for option, given in (("queries", self.queries), ("marginals", self.marginals)):
            if given is not None:
                raise BadInputError(
                    f"--target and --{option} are two ways to say what is asked; leave one of the "
                    "two out"
                )
        if self.way != 3 or not self.signed:
            raise BadInputError(
                "--target asks for whole marginals of the target and two columns; leave --way and "
                "--positive out"
            )

    def _check_items(self, rule: str) -> None:
        others = {"queries": self.queries, "marginals": self.marginals, "target": self.target}
        for option, given in others.items():
            if given is not None:
                raise BadInputError(
                    f"--query-items and --{option} are two ways to say what is asked; leave one of "
                    "the two out"
                )
        Frequent.parse(rule)

    def frequent(self, schema: Schema, mechanism: Mechanism[Any]) -> FrequentItems | None:
        """Return the queries that the release makes itself; None if it makes none.

        Raises
        ------
        BadInputError
            If the mechanism cannot, or the schema's columns are no items.
        """
        if self.items is None:
            return None
        if not mechanism.finds_frequent:
            raise BadInputError(
                f"mechanism {mechanism.name!r} cannot find frequent items; with --query-items use "
                "auto or staged"
            )
        columns = None if self.columns is None else schema.select(self.columns)
        return FrequentItems.of(self.items, schema.domain, self.way, columns)

    def require_marginals(self, schema: Schema) -> None:
        """Refuse more random marginals than the columns have, however many rows there are.

        Before anything private is bought: what no number of rows allows must cost nothing.

        Raises
        ------
        BadInputError
            If the columns have fewer sets of `way` than marginals are asked for.
        """
        if not isinstance(self.marginals, int):
            return
        chosen = None if self.columns is None else schema.select(self.columns)
        columns = schema.domain.columns if chosen is None else len(chosen)
        possible = math.comb(columns, self.way)
        if self.marginals > possible:
            raise BadInputError(
                f"{self.marginals:,} random {self.way}-way marginals asked, but {columns:,} "
                f"columns have only {possible:,}; ask for fewer, or for all of them with "
                "--marginals all"
            )

    def trial(self, schema: Schema) -> Workload:
        """Make a few queries to try a plan on; all, if they are listed, so that each is read."""
        if self.queries is None or isinstance(self.queries, int) or self.queries == "all":
            few: int | str = "all" if schema.domain.bits < 1000 else 20
            return WorkloadRequest(queries=few, way=1, columns=self.columns).build(schema, 2)
        return self.build(schema, 2)

    def build(self, schema: Schema, n: int) -> Workload:
        """Make the queries.

        Raises
        ------
        BadInputError
            If the schema has too few columns or queries, the file has a faulty line, or queries are
            about frequent items (`frequent`).
        """
        if self.items is not None:
            raise BadInputError("the queries of --query-items are known only to a release of them")
        from dualquery.queries.generate.files import read_queries, workload_of_texts
        from dualquery.queries.generate.marginals import (
            all_marginals,
            random_marginals,
            target_marginals,
        )
        from dualquery.queries.generate.random import count_distinct, random_conjunctions

        domain = schema.domain
        columns = None if self.columns is None else schema.select(self.columns)
        if self.target is not None:
            chosen = schema.select([self.target]).tolist()
            if len(chosen) != 1:
                raise BadInputError(f"--target is {self.target!r}; name one column")
            return target_marginals(domain, chosen[0], columns)
        if isinstance(self.marginals, int):
            cells = n if self.max_cells is None else self.max_cells
            return random_marginals(domain, self.marginals, self.way, cells, self.seed, columns)
        if self.queries == "all" or self.marginals == "all":
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


@dataclass(frozen=True, kw_only=True)
class BudgetRequest:
    """The budget as asked for; `resolve` completes it once the number of rows is known.

    Raises
    ------
    BadInputError
        If epsilon, delta, the accountant or the neighbours cannot be, whatever the table.
    """

    epsilon: float = 1.0
    delta: float | None = None
    accountant: str = "auto"
    neighbours: str = "replace-one"
    rows: int | None = None
    unit: Unit | None = None
    weight: Weight | None = None

    def __post_init__(self) -> None:
        check_ranges(self.epsilon, 0.0 if self.delta is None else self.delta)
        choices(self.accountant)
        relation = self.relation
        if self.rows is None:
            return
        if relation.rows_public:
            raise BadInputError(
                "--rows states a number of rows where the true one is private; with --neighbours "
                "replace-one it is public and counted; leave --rows out, or use --neighbours "
                "add-remove"
            )
        if not 2 <= self.rows <= LARGEST_ROWS:
            raise BadInputError(
                f"--rows is {self.rows}; a whole number from 2 to {LARGEST_ROWS:,} is needed"
            )

    @property
    def relation(self) -> Neighbours:
        """What neighbouring tables differ in."""
        return Neighbours.parse(self.neighbours, self.unit, self.weight)

    def require_delta(self, mechanism: Mechanism[Any]) -> None:
        """Refuse to go without a delta where no public number can stand behind 1/n^2.

        A noisy number cannot: the guarantee must not depend on what the noise was.

        Raises
        ------
        BadInputError
            If delta is neither given nor 0 nor taken from ``--rows``.
        """
        counted = self.relation.replaces
        if self.delta is None and self.rows is None and not counted and not mechanism.pure:
            raise BadInputError(
                "--neighbours add-remove has no public number of rows n to take the default delta "
                "1/n^2 from; give --delta, or state a number of rows with --rows"
            )

    def count_rows(
        self,
        records: Rows,
        seed: int | None,
        pay: Callable[[Event], None] = lambda _: None,
        journal: Journal = NO_JOURNAL,
        units: int | None = None,
    ) -> RowCount:
        """Return the number of rows that everything public uses: known, stated or bought.

        ``units`` is the true number of units, if there are any. ``pay`` is called before a number
        is bought, with the event that is about to be drawn; ``journal`` keeps it.

        Raises
        ------
        BadInputError
            If a noisy number is too small.
        """
        relation = self.relation
        if relation.rows_public:
            return RowCount(records.n)
        public = units if relation.replaces else None
        if self.rows is not None:
            copies = max(2, round(self.rows / relation.of_copy))
            return RowCount(copies, relation, units=public)
        if public is not None and bought_epsilon(relation, None, self.epsilon) == 0:
            return RowCount(public, relation, units=public)
        return buy_row_count(records, self.epsilon, seed, relation, public, pay, journal)

    def delta_of(self, mechanism: Mechanism[Any], protected: int) -> float:
        """Return delta: as given, 0 of a pure mechanism, or 1/n^2 of so many that are protected."""
        if self.delta is not None:
            return self.delta
        return 0.0 if mechanism.pure else default_delta(protected)

    def resolve(self, mechanism: Mechanism[Any], rows: RowCount) -> tuple[Budget, tuple[str, ...]]:
        """Return the budget of the mechanism and remarks on it.

        Delta is 1/n^2 unless given (of n units where these are protected, and public), or 0 for a
        pure mechanism. What the number of rows cost is taken off epsilon.

        Raises
        ------
        BadInputError
            If there are too few rows, or units.
        """
        self.require_delta(mechanism)
        delta = self.delta_of(mechanism, rows.protected)
        notes = check_budget(self.epsilon, delta, rows.protected)
        budget = Budget(rows.rest(self.epsilon), delta, self.accountant, rows.neighbours)
        return budget, notes
