"""A release beside its table: errors in all, by column, by number of literals. Not private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualquery.estimates.total import tidy
from dualquery.queries.generate.frequent import KIND as FREQUENT
from dualquery.releases.unasked import unasked
from dualquery.runtime.figures import share

if TYPE_CHECKING:
    from dualquery.mechanisms.protocol import Budget
    from dualquery.releases.folder import Release
    from dualquery.releases.pictures import Picture

WARNING = "NOT PRIVATE: computed from the exact answers; for the holder of the table only"
GIVEN_QUERIES = (
    "the baselines are told for nothing which queries are asked; the release had to find them, at "
    "a part of its budget"
)
"""Said where a release made its own queries."""

SHOWN = 20
"""Columns and queries of the largest errors that `evaluate` names."""


@dataclass(frozen=True)
class Errors:
    """Distances between released and exact answers, both shares of the rows in [0, 1]."""

    max_error: float
    mean_error: float
    rmse: float

    @staticmethod
    def between(answers: NDArray[np.float64], truth: NDArray[np.float64]) -> Errors:
        """Compare two float64 arrays of shape ``(m,)``."""
        off = np.abs(answers - truth)
        return Errors(float(off.max()), float(off.mean()), float(np.sqrt(np.mean(off**2))))

    def brief(self) -> dict[str, float]:
        """Return the two errors that every line of a comparison shows."""
        return {"max_error": self.max_error, "mean_error": self.mean_error}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A release beside its table: **not private**, for the holder of the table.

    Parameters
    ----------
    release
        The release.
    truth
        float64, shape ``(m,)``: the exact answers.
    rows, counted
        Number of rows of the table, of which the truth is, or their total weight; and of those that
        count in a release: fewer where a unit has more than may.
    budget
        The budget of the baselines.
    synthetic
        Errors of the records' own answers; None without records.
    baselines
        Errors of each baseline by its name.
    noise
        The mechanism behind the baseline ``gaussian``.
    means
        The exact means of the columns whose means were bought, by their names.
    """

    release: Release
    truth: NDArray[np.float64]
    rows: float
    counted: float
    budget: Budget
    synthetic: Errors | None
    baselines: Mapping[str, Errors]
    noise: str
    means: Mapping[str, float] = field(default_factory=dict)

    def bought(self) -> list[dict[str, Any]]:
        """Return each bought mean, its interval and that one's level, and the truth."""
        from dualquery.releases.bought import means_of

        return [
            {
                "column": name,
                "mean": mean,
                "low": float(around.lower[0]),
                "high": float(around.upper[0]),
                "level": around.level,
                "truth": self.means[name],
            }
            for name, mean, around in means_of(self.release)
            if name in self.means
        ]

    @property
    def size(self) -> str:
        """The number of rows, or their total weight, and how many of them count, in words."""
        weighted, unit = self.budget.neighbours.weight is not None, self.budget.neighbours.unit
        size = f"a total weight of {self.rows:,.10g}" if weighted else f"{self.rows:,} rows"
        if unit is None:
            return size
        return f"{size}, of which {self.counted:,.10g} count: at most {unit.max_rows:,} of a unit"

    @property
    def protected(self) -> str:
        """What the guarantee protects, in words."""
        unit = self.budget.neighbours.unit
        of_unit = "" if unit is None else f" of units (column {unit.column!r})"
        return f"{self.budget.neighbours.value}{of_unit}"

    @property
    def errors(self) -> Errors:
        """Errors of the released answers."""
        return Errors.between(self.release.answers, self.truth)

    @property
    def remark(self) -> str | None:
        """What the comparison leaves out, if anything."""
        found = self.release.workload.description.get("kind") == FREQUENT
        return GIVEN_QUERIES if found else None

    def by_literals(self) -> list[dict[str, Any]]:
        """Return the errors of queries by their number of literals; empty for other families."""
        literals = self._literals()
        if literals is None:
            return []
        size = np.count_nonzero(literals >= 0, axis=1)
        return [
            {"literals": int(k), "queries": int(np.sum(size == k)), **self._of(size == k).brief()}
            for k in np.unique(size)
        ]

    def by_column(self) -> list[dict[str, Any]]:
        """Return the errors of the queries about each column, the largest mean error first."""
        literals = self._literals()
        if literals is None:
            return []
        schema = self.release.schema
        columns = schema.domain.column_of_bit[np.where(literals >= 0, literals >> 1, 0)]
        off = np.broadcast_to(self._off[:, None], literals.shape)[literals >= 0]
        asked = columns[literals >= 0]
        names = schema.column_names
        queries = np.bincount(asked, minlength=len(names))
        mean = np.bincount(asked, off, minlength=len(names)) / np.maximum(queries, 1)
        largest = np.zeros(len(names))
        np.maximum.at(largest, asked, off)
        return [
            {
                "column": names[column],
                "queries": int(queries[column]),
                "max_error": float(largest[column]),
                "mean_error": float(mean[column]),
            }
            for column in np.argsort(-mean, kind="stable")
            if queries[column]
        ]

    def worst(self, count: int) -> list[dict[str, Any]]:
        """Return the queries with the largest errors, the largest first."""
        places = np.argsort(-self._off, kind="stable")[:count]
        texts = self.release.workload.text(self.release.schema)
        return [
            {
                "query": texts[int(place)],
                "answer": float(self.release.answers[place]),
                "truth": float(self.truth[place]),
                "error": float(self._off[place]),
            }
            for place in places
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return what `evaluate` says: JSON-able."""
        options, unit = self.release.options, self.budget.neighbours.unit
        baselines: dict[str, Any] = {name: each.brief() for name, each in self.baselines.items()}
        if self.noise != "gaussian":
            baselines["gaussian"]["noise"] = self.noise
        return {
            "warning": WARNING,
            **self.errors.brief(),
            "rmse": self.errors.rmse,
            "queries": len(self.release.workload),
            "rows": self.rows,
            "rows_counted": self.counted,
            "rows_of_release": tidy(self.release.base.unit),
            "mechanism": self.release.chosen,
            "private": self.release.privacy.private,
            "epsilon": options["epsilon"],
            "delta": self.budget.delta,
            "neighbours": self.budget.neighbours.value,
            "unit": None if unit is None else {"column": unit.column, "max_rows": unit.max_rows},
            "synthetic": None if self.synthetic is None else self.synthetic.brief(),
            "baselines": baselines,
            "means": self.bought(),
            "remark": self.remark,
            "unasked": unasked(self.release),
            "by_literals": self.by_literals(),
            "by_column": self.by_column()[:SHOWN],
            "worst": self.worst(SHOWN),
        }

    def plot(self) -> Picture:
        """Draw errors against the truth, by number of literals and by column.

        Returns
        -------
        A Matplotlib figure, marked as not private.

        Raises
        ------
        BadInputError
            If Matplotlib is not there.
        """
        from dualquery.releases.pictures import of_errors

        answers = self.release.answers
        return of_errors(answers, self.truth, self.by_literals(), self.by_column(), WARNING)

    def _repr_html_(self) -> str:
        from dualquery.runtime.escaping import html_text

        lines = {"this release": self.errors, "its synthetic records": self.synthetic}
        lines |= {f"baseline: {name}": errors for name, errors in self.baselines.items()}
        rows = "".join(
            f"<tr><th>{html_text(name)}</th><td>{share(errors.max_error)}</td>"
            f"<td>{share(errors.mean_error)}</td></tr>"
            for name, errors in lines.items()
            if errors is not None
        )
        heads = "<tr><th>answers from</th><th>max error</th><th>mean error</th></tr>"
        return f"<p><strong>{WARNING}</strong></p><table>{heads}{rows}</table>"

    @property
    def _off(self) -> NDArray[np.float64]:
        return np.abs(self.release.answers - self.truth)

    def _of(self, some: NDArray[np.bool_]) -> Errors:
        return Errors.between(self.release.answers[some], self.truth[some])

    def _literals(self) -> NDArray[np.int32] | None:
        from dualquery.queries.conjunctions import conjunctions_of

        conjunctions = conjunctions_of(self.release.workload)
        return None if conjunctions is None else conjunctions.literals
