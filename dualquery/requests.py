"""What a user asks for: one `ReleaseSpec`, checked as far as possible without a table.

All options of a release are declared here, or on the objects that its fields hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.data.given_table import Table, Unit, Weight
from dualquery.data.opening import is_file
from dualquery.mechanisms.protocol import Budget, Mechanism
from dualquery.mechanisms.registry import BUILT_IN, check_mechanism, configure, with_records
from dualquery.privacy.accountants.choice import choices
from dualquery.privacy.events import Event
from dualquery.privacy.guarantee import check_budget, check_ranges, default_delta
from dualquery.privacy.neighbours import Neighbours
from dualquery.queries.family import Queries, over_domain
from dualquery.queries.generate.frequent import Frequent, FrequentItems
from dualquery.room.journal import NO_JOURNAL, Journal
from dualquery.room.row_count import RowCount, bought_epsilon, buy_row_count
from dualquery.rows.engine_choice import EngineChoice
from dualquery.rows.row_sums import Rows
from dualquery.runtime.errors import BadInputError
from dualquery.runtime.option_fields import (
    BUDGET,
    DATA,
    MECHANISM,
    RUN,
    WORKLOAD,
    check_options,
    option,
    part,
)
from dualquery.runtime.progress import NO_PROGRESS, Progress

if TYPE_CHECKING:
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.checkpoints.checkpoint import Checkpoint
    from dualquery.data.schema.any_schema import Schema
    from dualquery.queries.conjunctions import Workload
    from dualquery.rows.engines import Engine

DEFAULT_QUERIES, DEFAULT_WAY, LARGEST_ROWS = 100_000, 3, 10**12


def _number_or_text(text: str) -> int | str:
    """Return the whole number that a text is, such as ``100_000`` or ``1e5``; else the text."""
    match = re.fullmatch(r"([+-]?\d+)(?:\.0)?(?:[eE]\+?(\d\d?))?", text.replace("_", ""), re.ASCII)
    return text if match is None else int(match[1]) * 10 ** int(match[2] or 0)


def _read_queries(text: str) -> int | str:
    """Read ``--queries``: a number, ``all`` or a file."""
    found = _number_or_text(text)
    if found != "all" and isinstance(found, str) and not is_file(Path(found)):
        raise BadInputError(
            f"--queries is {text!r}, and there is no such file; give a number, 'all' or a file"
        )
    return found


@dataclass(frozen=True, kw_only=True)
class WorkloadRequest:
    """A public description of a workload; `build` makes the queries for a schema.

    In Python, ``queries`` may also be a list of queries as texts or a family of queries
    (`dualquery.queries.family`), and columns names, positions or ranges.
    """

    panel = WORKLOAD
    queries: int | str | Path | Sequence[str] | Queries | None = option(
        None,
        "Number of random conjunctions (default: 100000, or all that differ), 'all', or a file "
        "with one query a line.",
        read=_read_queries,
        least=1,
    )
    way: int = option(DEFAULT_WAY, "Literals of a query.", least=1)
    signed: bool = option(True, "Whether literals may be negated.", flags=("--signed/--positive",))
    seed: int = option(0, "Seed of the random queries. Public.", name="workload_seed", least=0)
    columns: Sequence[str | int] | str | None = option(
        None, "Columns that queries may use; default: all.", name="query_columns"
    )
    marginals: int | str | None = option(
        None,
        "Number of random whole marginals to ask about, or 'all', instead of --queries.",
        read=_number_or_text,
        least=1,
    )
    max_cells: int | None = option(None, "Most cells of a marginal; default: n.", least=1)
    target: str | int | None = option(
        None,
        "Column that models will predict, instead of --queries: all its marginals with two other "
        "columns.",
    )
    items: str | None = option(
        None,
        "Ask about items found to be frequent, instead of --queries: top:100 or share>=0.01. All "
        "positive conjunctions of --way of them.",
        name="query_items",
    )
    means: Sequence[str | int] | str | None = option(
        None, "Numeric columns whose means are bought besides, for a tenth of epsilon."
    )

    def __post_init__(self) -> None:
        check_options(self)
        if isinstance(self.queries, Queries):
            return
        known = (int, str, Path, list, tuple, type(None))
        if isinstance(self.queries, bool) or not isinstance(self.queries, known):
            raise BadInputError(
                f"queries is {self.queries!r}; give a number, 'all', a path or a list of texts"
            )
        texts = self.queries if isinstance(self.queries, list | tuple) else ("",)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise BadInputError("queries is a list; give it texts such as 'age>=30 & sex=Male'")
        if type(self.marginals) not in (int, type(None)) and self.marginals != "all":
            raise BadInputError(f"--marginals is {self.marginals!r}; give a number, or 'all'")
        ways: dict[str, object] = {"target": self.target, "query-items": self.items}
        ways |= {"marginals": self.marginals, "queries": self.queries}
        if len(asked := [f"--{name}" for name, value in ways.items() if value is not None]) > 1:
            raise BadInputError(
                f"{asked[0]} and {asked[1]} are two ways to say what is asked; leave one out"
            )
        listed = isinstance(self.queries, str | Path | list | tuple) and self.queries != "all"
        whole = self.marginals is not None or self.target is not None
        for flag, given in {
            "--query-columns": self.columns is not None and listed,
            "--way": self.way != DEFAULT_WAY and self.target is not None,
            "--positive": not self.signed and (listed or whole),
        }.items():
            if given:
                raise BadInputError(
                    f"{flag} does not go with {asked[0]}, which says that itself; leave it out"
                )
        if self.items is not None:
            Frequent.parse(self.items)
        if self.max_cells is not None and not isinstance(self.marginals, int):
            raise BadInputError("--max-cells goes with a number of --marginals")

    @property
    def described(self) -> WorkloadRequest:
        """The request without a family of queries of the user's own, whose digest is kept."""
        return replace(self, queries=1) if isinstance(self.queries, Queries) else self

    def frequent(self, schema: Schema, mechanism: Mechanism[Any]) -> FrequentItems | None:
        """Return the queries that the release makes itself, if it makes any."""
        if self.items is None:
            return None
        if not mechanism.finds_frequent:
            raise BadInputError(f"--query-items: {mechanism.name} cannot find frequent items")
        return FrequentItems.of(self.items, schema.domain, self.way, self._chosen(schema))

    def _chosen(self, schema: Schema) -> Any:
        return None if self.columns is None else schema.select(self.columns)

    def way_of(self, schema: Schema) -> int:
        """Return the number of literals: fewer than the default if there are fewer columns."""
        chosen = self._chosen(schema)
        columns = schema.domain.columns if chosen is None else len(chosen)
        listed = self.target is not None or self.items is not None
        return min(self.way, columns) if self.way == DEFAULT_WAY and not listed else self.way

    def remarks(self, schema: Schema) -> tuple[str, ...]:
        """Return what a reader of the release must know of the queries."""
        way = self.way_of(schema)
        if way == self.way or (self.marginals is None and self.queries not in (None, "all")):
            return ()
        return (f"Queries have {way} literals, as there are only {way} columns to ask about.",)

    def over(self, schema: Schema, n: int) -> Queries:
        """Return a family of the user's own, if it is about the schema's columns; else `build`."""
        if not isinstance(self.queries, Queries):
            return self.build(schema, n)
        own = self.queries.domain
        if own.offsets.tolist() != schema.domain.offsets.tolist():
            raise BadInputError(
                f"the workload is about {own.columns} columns of {own.bits} bits, but schema "
                f"{schema.name!r} has {schema.domain.columns} of {schema.domain.bits}: make it for "
                "the schema's own domain"
            )
        return over_domain(self.queries, schema.domain)

    def build(self, schema: Schema, n: int, most: int = DEFAULT_QUERIES) -> Workload:
        """Make the queries; n, the number of rows, limits marginals, and ``most`` the default.

        `BadInputError` if that cannot be, or queries are about frequent items (`frequent`).
        """
        if self.items is not None:
            raise BadInputError("the queries of --query-items are known only to a release of them")
        from dualquery.queries.generate import query_files, workloads

        domain, columns, way = schema.domain, self._chosen(schema), self.way_of(schema)
        if self.target is not None:
            chosen = schema.select([self.target], "--target").tolist()
            if len(chosen) != 1:
                raise BadInputError(f"--target is {self.target!r}; name one column")
            return workloads.target_marginals(domain, chosen[0], columns)
        if isinstance(self.marginals, int):
            cells = n if self.max_cells is None else self.max_cells
            return workloads.random_marginals(
                domain, self.marginals, way, cells, self.seed, columns
            )
        if self.queries == "all" or self.marginals == "all":
            return workloads.all_marginals(domain, way, self.signed, columns)
        if isinstance(self.queries, str | Path):
            return query_files.read_queries(self.queries, schema)
        if isinstance(self.queries, Sequence):
            return query_files.workload_of_texts(self.queries, schema, "a list", "query {}".format)
        m = self.queries or min(most, workloads.count_distinct(domain, way, self.signed, columns))
        assert not isinstance(m, Queries)
        return workloads.random_conjunctions(domain, m, way, self.signed, self.seed, columns)


@dataclass(frozen=True)
class Guarantee:
    """What epsilon and delta are about.

    `unit` and `weight` are a `Unit` and a `Weight` (`dualquery.data.given_table`), or None for
    rows that stand alone and count once.
    """

    panel = BUDGET
    neighbours: str = option(
        "replace-one", "replace-one (n is public) or add-remove (n is private)."
    )
    _: KW_ONLY
    rows: int | None = option(
        None,
        "With add-remove or --unit: a public number of rows (with --weight their total weight) to "
        "plan with; default, and released: a noisy one. With --dry-run: how many rows to plan for.",
    )
    accountant: str = option(
        "auto", "auto (the smallest valid bound), or one that 'dualquery budget plan' lists."
    )
    unit: Unit | None = part(Unit, None)
    weight: Weight | None = part(Weight, None)

    def __post_init__(self) -> None:
        check_options(self)
        for name, kind, rest in (("unit", Unit, "max_rows"), ("weight", Weight, "max")):
            given = getattr(self, name)
            if not isinstance(given, kind | None):
                raise BadInputError(
                    f"{name} is {given!r}; a dualquery.{kind.__name__}(column, {rest}) is needed"
                )


@dataclass(frozen=True, kw_only=True)
class BudgetRequest(Guarantee):
    """The budget as asked for, and its guarantee; `resolve` completes it for a number of rows."""

    epsilon: float = option(1.0, "Largest privacy loss.")
    delta: float | None = option(
        None, "Default: 1/n^2 of n rows or units, or 0 for a pure mechanism."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ranges(self.epsilon, 0.0 if self.delta is None else self.delta)
        choices(self.accountant)
        if self.relation.rows_public and self.rows is not None:
            raise BadInputError(
                "--rows states a number of rows that is private; with --neighbours replace-one it "
                "is public and counted: leave --rows out, or use --neighbours add-remove"
            )
        if self.rows is not None and not 2 <= self.rows <= LARGEST_ROWS:
            raise BadInputError(
                f"--rows is {self.rows}; a whole number from 2 to {LARGEST_ROWS:,} is needed"
            )

    @cached_property
    def relation(self) -> Neighbours:
        """What neighbouring tables differ in."""
        return Neighbours.parse(self.neighbours, self.unit, self.weight)

    @property
    def buys_rows(self) -> bool:
        """Whether epsilon is spent on the number of rows."""
        return bought_epsilon(self.relation, self.rows, self.epsilon) > 0

    def copies_of(self, rows: int) -> int:
        """Return how many copies of a row a stated number of rows, or total weight, makes up."""
        return max(2, round(rows / self.relation.of_copy))

    def require_delta(self, mechanism: Mechanism[Any]) -> None:
        """Refuse to take 1/n^2 from a noisy n: no guarantee may depend on what the noise was."""
        needless = self.relation.replaces or mechanism.pure
        if self.delta is None and (self.rows is None or self.weight) and not needless:
            raise BadInputError(
                "--neighbours add-remove has no public number of rows n to take the default delta "
                "1/n^2 from; give --delta, or state a number of rows with --rows (no weight)"
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

        ``units`` is the true number of units, if any. ``pay`` is called before a number is bought,
        with the event; ``journal`` keeps it. `BadInputError` if a noisy number is too small.
        """
        relation = self.relation
        if relation.rows_public:
            return RowCount(records.n)
        public = units if relation.replaces else None
        if self.rows is not None:
            return RowCount(self.copies_of(self.rows), relation, units=public)
        if public is not None and bought_epsilon(relation, None, self.epsilon) == 0:
            return RowCount(public, relation, units=public)
        return buy_row_count(records, self.epsilon, seed, relation, public, pay, journal)

    def delta_of(self, mechanism: Mechanism[Any], protected: int) -> float:
        """Return delta: as given, 0 of a pure mechanism, or 1/n^2 of n that are protected."""
        if self.delta is not None:
            return self.delta
        return 0.0 if mechanism.pure else default_delta(protected)

    def resolve(self, mechanism: Mechanism[Any], rows: RowCount) -> tuple[Budget, tuple[str, ...]]:
        """Return the mechanism's budget, without the cost of the number of rows, and remarks."""
        self.require_delta(mechanism)
        delta = self.delta_of(mechanism, rows.protected)
        copies = rows.neighbours.copies if rows.units is None else 1  # of a row, by its weight
        notes = check_budget(self.epsilon, delta, max(2, rows.protected // copies))
        return Budget(rows.rest(self.epsilon), delta, self.accountant, rows.neighbours), notes


@dataclass(frozen=True)
class SyntheticRecords:
    """The synthetic records of a release; a mechanism that fits no distribution repeats its own."""

    panel = MECHANISM
    number: int | None = option(
        None, "Records; default: one a row, up to a million, or a game's.", name="records", least=1
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, kw_only=True)
class MechanismRequest:
    """A mechanism by name, and values for the fields of its configuration."""

    panel = MECHANISM
    name: str | None = option(
        None,
        f"One of {', '.join(BUILT_IN)}. Default: auto, which passes the options below on to what "
        "it chooses; those of a game imply dualquery.",
        name="mechanism",
    )
    given: Mapping[str, Any] | Sequence[str] | None = option(
        None,
        "An option of the mechanism; 'release -o help' lists them.",
        name="option",
        flags=("--option", "-o"),
        kind=list[str],
        metavar="KEY=VALUE",
    )
    rounds: int | None = option(None, "Rounds of the game (T).", flags=("--rounds", "--iterations"))
    samples: int | None = option(None, "Queries drawn in each round (s).")
    eta: float | None = option(None, "Learning rate of the game.")
    repetitions: int | None = option(None, "Updates in each iteration of mwem.")
    solver: str | None = option(
        None, "Solver of best responses, one that 'dualquery solvers' lists; default: auto."
    )
    solver_timeout: float | None = option(None, "Most seconds for one best response; default: 20.")

    def __post_init__(self) -> None:
        check_options(self)
        if self.name is not None:
            check_mechanism(self.name)
        _ = self.options

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """All options that were given, by name."""
        given = self.given or {}
        found = dict(given) if isinstance(given, Mapping) else {}
        for text in () if isinstance(given, Mapping) else given:
            key, equals, value = text.partition("=")
            if not equals or not key:
                raise BadInputError(f"-o {text!r}: write it as key=value")
            if key in found:
                raise BadInputError(f"-o {key} is given twice")
            found[key] = value
        for name in (each.name for each in fields(self) if each.name not in ("name", "given")):
            if (value := getattr(self, name)) is not None:
                if name in found:
                    raise BadInputError(f"{name} is given twice, as -o {name} and as an option")
                found[name] = value
        return found


@dataclass(frozen=True)
class Run:
    """How a release is run. Nothing of it changes an answer or a record.

    What you choose after seeing private errors is not covered by the guarantee. ``checkpoint``
    keeps what is drawn, or has it from an interrupted run (`dualquery.releases.keep.reservation`).
    ``progress`` listens to phases and rounds; True for lines on stderr.
    """

    panel = RUN
    engine: EngineChoice | str = part(EngineChoice, "auto")
    _: KW_ONLY
    threads: int | None = option(
        None, "Most threads; default: one for each core.", least=1, attempt=True
    )
    checkpoint: Checkpoint | None = None
    show_private_errors: bool = option(
        False, "Show the TRUE errors of the answers on stderr: for you only, NOT PRIVATE."
    )
    progress: Progress | bool | None = NO_PROGRESS

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def reading(self) -> Engine:
        """The engine; `BadInputError` if there is none of that name."""
        from dualquery.rows.engines import Engine

        if isinstance(self.engine, Engine):
            return self.engine
        of_options = isinstance(self.engine, EngineChoice)
        return Engine(**(vars(self.engine) if of_options else {"name": self.engine}))


@dataclass(frozen=True, kw_only=True)
class ReleaseSpec:
    """All that a release is asked to be: what `release`, the dry run and a resumed run take."""

    table: Table = part(Table)
    schema: Schema | Mapping[str, object] | str | Path | None = option(
        None, "Schema: a file or a built-in name. Without it a part of the budget learns one.", DATA
    )
    workload: WorkloadRequest = part(WorkloadRequest)
    mechanism: MechanismRequest = part(MechanismRequest)
    records: SyntheticRecords = part(SyntheticRecords)
    budget: BudgetRequest = part(BudgetRequest)
    budget_file: str | Path | BudgetFile | None = option(
        None, "A budget file to charge (budget init makes one).", BUDGET, name="budget", kind=Path
    )
    seed: int | None = option(
        None, "Makes the run reproducible, and the release NOT private.", RUN, least=0
    )
    run: Run = part(Run)

    def __post_init__(self) -> None:
        check_options(self)

    @cached_property
    def configured(self) -> Mechanism[Any]:
        """The mechanism with its options; `BadInputError` if it cannot be."""
        configured = configure(self.mechanism.name, self.mechanism.options)
        made = with_records(configured, self.records.number)
        self.budget.require_delta(made)
        return made

    @property
    def checkpoint(self) -> Checkpoint | None:
        """What keeps the draws; None for a run with a seed."""
        return self.run.checkpoint if self.seed is None else None
