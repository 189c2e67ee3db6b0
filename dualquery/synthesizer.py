"""The fit and sample that users of other synthesizers, and of scikit-learn, know."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualquery.api import release
from dualquery.data.frames import FrameKind, as_table
from dualquery.mechanisms.registry import check_mechanism, has_options, mechanism_names
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.folder import load_release
from dualquery.releases.sampling import source_of_records
from dualquery.runtime.errors import BadInputError, did_you_mean
from dualquery.runtime.escaping import html_text

if TYPE_CHECKING:
    from dualquery.budgets.budget_file import BudgetFile
    from dualquery.checkpoints.checkpoint import Checkpoint
    from dualquery.data.schema.protocol import Schema
    from dualquery.data.units import Unit, Weight
    from dualquery.queries.family import Queries
    from dualquery.releases.folder import Release
    from dualquery.rows.engines import Engine
    from dualquery.runtime.progress import Progress

ELSEWHERE = ("aim", "dpctgan", "dpgan", "mst", "pacsynth", "patectgan", "pategan")
"""Synthesizers that smartnoise-synth knows and this package does not have."""


class Synthesizer:
    """Makes synthetic rows from a private table.

    Rows are drawn from the model that the release keeps. A mechanism that fits none, such as
    ``dualquery``, makes a limited number of records instead, and `sample` repeats these.

    An estimator by scikit-learn's rules: the constructor only keeps what it is given, `fit` checks
    it, and `get_params`, `set_params` and ``sklearn.base.clone`` work.

    Parameters
    ----------
    epsilon, delta
        Privacy budget; ``delta`` None for 1/n^2.
    schema
        The declared columns: a schema, a file, a built-in name or a dict. Without one the result is
        not private.
    queries, mechanism, options, neighbours, budget, seed, progress
        And all others: as for `dualquery.release`. ``progress=True`` tells on stderr how far a long
        `fit` is.

    Attributes
    ----------
    release_
        After `fit`: the `Release`, with its privacy statement.

    Examples
    --------
    >>> from dualquery import Synthesizer
    >>> rows = Synthesizer(epsilon=1.0, schema="adult").fit_sample(table)  # doctest: +SKIP
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        schema: Schema | Mapping[str, object] | str | Path | None = None,
        columns: Sequence[str | int] | str | None = None,
        max_ones_per_row: int | None = None,
        csv: str | None = None,
        queries: int | str | Path | Sequence[str] | Queries | None = None,
        way: int = 3,
        signed: bool = True,
        workload_seed: int = 0,
        query_columns: Sequence[str | int] | str | None = None,
        marginals: int | str | None = None,
        max_cells: int | None = None,
        target: str | int | None = None,
        query_items: str | None = None,
        means: Sequence[str | int] | str | None = None,
        mechanism: str | None = None,
        options: Mapping[str, Any] | None = None,
        records: int | None = None,
        polish: float | None = None,
        neighbours: str = "replace-one",
        unit: Unit | None = None,
        weight: Weight | None = None,
        rows: int | None = None,
        accountant: str = "auto",
        budget: str | Path | BudgetFile | None = None,
        checkpoint: Checkpoint | None = None,
        seed: int | None = None,
        engine: Engine | str = "auto",
        threads: int | None = None,
        show_private_errors: bool = False,
        progress: Progress | bool | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.columns = columns
        self.max_ones_per_row = max_ones_per_row
        self.csv = csv
        self.queries = queries
        self.way = way
        self.signed = signed
        self.workload_seed = workload_seed
        self.query_columns = query_columns
        self.marginals = marginals
        self.max_cells = max_cells
        self.target = target
        self.query_items = query_items
        self.means = means
        self.mechanism = mechanism
        self.options = options
        self.records = records
        self.polish = polish
        self.neighbours = neighbours
        self.unit = unit
        self.weight = weight
        self.rows = rows
        self.accountant = accountant
        self.budget = budget
        self.checkpoint = checkpoint
        self.seed = seed
        self.engine = engine
        self.threads = threads
        self.show_private_errors = show_private_errors
        self.progress = progress

    @classmethod
    def create(cls, synth: str = "auto", epsilon: float = 1.0, **options: Any) -> Synthesizer:
        """Return a synthesizer by the name of its mechanism, as smartnoise-synth's factory does.

        Parameters
        ----------
        synth
            A mechanism's name. One that only smartnoise-synth has becomes ``auto``, with a warning.
        epsilon
            Privacy budget.
        options
            Keywords of the constructor, or options of the mechanism. Others, which tune
            smartnoise-synth's own synthesizers, are named in a warning and left out.

        Raises
        ------
        BadInputError
            If there is no such mechanism.
        """
        name = synth.lower()
        if name in ELSEWHERE:
            warnings.warn(f"{synth} is not in this package; the mechanism is auto", stacklevel=2)
            name = "auto"
        check_mechanism(name)
        known = cls._names()
        kept = {key: value for key, value in options.items() if key in known}
        others = {key: value for key, value in options.items() if key not in known}
        own = {key: value for key, value in others.items() if has_options(name, [key])}
        if foreign := sorted(others.keys() - own.keys()):
            warnings.warn(f"left out, without a meaning here: {', '.join(foreign)}", stacklevel=2)
        if own:
            kept["options"] = {**own, **(kept.get("options") or {})}
        return cls(epsilon, **{"mechanism": name, **kept})

    @classmethod
    def list_synthesizers(cls) -> list[str]:
        """Return the names that `create` takes, as smartnoise-synth's factory does."""
        return [*mechanism_names(), *ELSEWHERE]

    def fit(self, X: Any, y: Any = None, **elsewhere: Any) -> Synthesizer:  # noqa: ARG002
        """Spend the budget on a table; `sample` costs nothing after that.

        Warns when the result is not private, as it is without a declared ``schema``.

        Parameters
        ----------
        X
            The table, as `dualquery.release` takes it; or a NumPy matrix of any numbers, whose
            columns are called ``0``, ``1`` and so on (one of 0 and 1 only if ``schema`` has them).
            Its types are taken as public: `sample` gives them back. Where pandas made a column of
            whole numbers ``float64`` because some row lacks one, that says so; ``Int64`` does not.
        y
            Ignored; scikit-learn's pipelines pass it. A target is a column of the table.
        elsewhere
            What smartnoise-synth takes to make a schema from the table (``preprocessor_eps``,
            ``categorical_columns`` and the like): left out with a warning.

        Raises
        ------
        BadInputError
            If the table or the parameters cannot be used, or the mechanism makes no records.
        """
        if elsewhere:
            warnings.warn(
                f"left out: {', '.join(sorted(elsewhere))}; no budget is spent on a schema, state "
                "one with schema=",
                stacklevel=2,
            )
        made = release(as_table(X, self.schema), **self._given())
        if not made.privacy.private:
            warnings.warn(made.privacy.text(), stacklevel=2)
        self.release_ = made  # whatever comes now, it is paid for
        self._kind = FrameKind.of(X)
        source_of_records(made)
        return self

    @property
    def release(self) -> Release:
        """The release behind the samples, with its privacy statement."""
        made: Release | None = getattr(self, "release_", None)
        if made is None:
            raise BadInputError("call fit before sample")
        return made

    def sample(self, n: int | None = None, *, seed: int | None = None) -> Any:
        """Return rows in the user's columns: see `Release.sample`.

        ``n`` is by default what the release says of the table's number of rows. A pandas table
        or a NumPy matrix if one was fitted, else a Polars table, with the types that the fitted
        table's columns had; categorical ones have the schema's categories.
        """
        made = self.release
        whole = max(1, made.n // Neighbours.of_options(made.options).copies)
        rows = made.sample(whole if n is None else n, seed=seed)
        return self._kind.made_of(rows, self.release.schema)

    def fit_sample(self, X: Any, n: int | None = None, **elsewhere: Any) -> Any:
        """Fit and sample (see both)."""
        return self.fit(X, **elsewhere).sample(n)

    def save(self, path: str | Path) -> Path:
        """Write the release of `fit` as a folder; costs no privacy.

        Raises
        ------
        BadInputError
            If nothing was fitted, or as `Release.save`.
        """
        return self.release.save(path)

    @classmethod
    def load(cls, path: str | Path, like: Any = None) -> Synthesizer:
        """Return a fitted synthesizer with the release of a folder, which any command may write.

        Parameters
        ----------
        path
            The folder.
        like
            A table of the kind, and with the types, that samples are to have; None for Polars, and
            types of the schema.

        Raises
        ------
        BadInputError
            As `load_release`; or if the release makes no records.
        """
        made = load_release(path)
        source_of_records(made)
        asked = made.options
        found = cls(asked["epsilon"], asked["delta"], schema=made.schema, mechanism=made.mechanism)
        found.release_ = made
        found._kind = FrameKind.of(like)
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the constructor's parameters by name; ``deep`` makes no difference."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Synthesizer:
        """Change parameters of the constructor, for the next `fit`.

        Raises
        ------
        ValueError
            If there is no such parameter.
        """
        known = self._names()
        for name, value in params.items():
            if name not in known:
                close = did_you_mean(name, known)
                raise ValueError(f"Synthesizer has no parameter {name!r}{close}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn has to know of an estimator, as its own checks ask for it."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(sparse=True, categorical=True, string=True, allow_nan=True),
            no_validation=True,
            non_deterministic=True,
        )

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._given().items())
        return f"Synthesizer({given})"

    def _repr_html_(self) -> str:
        made: Release | None = getattr(self, "release_", None)
        fitted = "not fitted yet" if made is None else repr(made)
        lines = map(html_text, (repr(self), *fitted.splitlines()))
        return f"<p>{'<br>'.join(lines)}</p>"

    def _given(self) -> dict[str, Any]:
        """Return the parameters that are not as the constructor has them by default."""
        default = inspect.signature(type(self).__init__).parameters
        return {
            name: value
            for name, value in self.get_params().items()
            if value is not default[name].default
        }

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]
