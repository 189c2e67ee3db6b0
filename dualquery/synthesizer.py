"""The fit and sample that users of other synthesizers, and of scikit-learn, know."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

from dualquery.api import KEYWORDS, release
from dualquery.data.frames import FrameKind, as_table
from dualquery.mechanisms.registry import configure, with_records
from dualquery.privacy.neighbours import Neighbours
from dualquery.releases.answer.sampling import source_of_records
from dualquery.releases.keep.folder import Release, load_release
from dualquery.runtime.errors import BadInputError, did_you_mean


class Synthesizer:
    """Makes synthetic rows from a private table; an estimator by scikit-learn's rules.

    Rows are drawn from the model that the release keeps. A mechanism that fits none, such as
    ``dualquery``, makes a limited number of records instead, and `sample` repeats these. Parameters
    are those of `dualquery.release`, and are checked by `fit`; ``release_`` is the `Release` then,
    with its privacy statement.

    Examples
    --------
    >>> from dualquery import Synthesizer
    >>> rows = Synthesizer(epsilon=1.0, schema="adult").fit_sample(table)  # doctest: +SKIP
    """

    schema: Any
    release_: Release

    def __init__(self, *values: Any, **named: Any) -> None:
        given = SIGNATURE.bind(*values, **named)
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    def fit(self, X: Any, y: Any = None) -> Synthesizer:  # noqa: ARG002
        """Spend the budget on a table; `sample` costs nothing after that.

        Warns when the result is not private. `BadInputError` if that cannot be.

        Parameters
        ----------
        X
            The table, as `dualquery.release` takes it; or a NumPy matrix of numbers, with columns
            ``0``, ``1`` and so on: items if ``bool``, by ``schema``, or with ``max_ones_per_row``.
            Its types are taken as public, even ``float64`` for whole numbers if some are missing.
        y
            Ignored: a target is a column of the table.
        """
        asked = configure(vars(self)["mechanism"], vars(self)["options"] or {})
        with_records(asked, getattr(asked, "records", None) or 1)  # or refuses: nothing is paid
        made = release(as_table(X, self.schema, vars(self)["max_ones_per_row"]), **self._given())
        if not made.privacy.private:
            warnings.warn(made.privacy.text(), stacklevel=2)
        self.release_ = made  # whatever comes now, it is paid for
        self._kind = FrameKind.of(X)
        return self

    @property
    def release(self) -> Release:
        """The release behind the samples, with its privacy statement."""
        if not hasattr(self, "release_"):
            raise BadInputError("call fit before sample")
        return self.release_

    def sample(self, n: int | None = None, *, seed: int | None = None) -> Any:
        """Return rows as Polars, pandas or NumPy, as was fitted: see `Release.sample`.

        ``n`` is by default the release's number of rows; with a weight, as many rows of the largest
        one as make up the total. Categorical columns have the schema's categories, and those of
        hours, days of a week or months their names.
        """
        least = self.release.base.rows_at_least
        return self._kind.made_of(self.release.sample(least if n is None else n, seed=seed))

    def fit_sample(self, X: Any, n: int | None = None) -> Any:
        """Fit and sample (see both)."""
        return self.fit(X).sample(n)

    def save(self, path: str | Path) -> Path:
        """Write the release of `fit` as a folder: see `Release.save`."""
        return self.release.save(path)

    @classmethod
    def load(cls, path: str | Path, like: Any = None) -> Synthesizer:
        """Return a fitted synthesizer with a saved release, but no budget file: see `load_release`.

        ``like`` is a table of the kind, and with the types, that samples are to have; None for
        Polars, and types of the schema. `BadInputError` if the release makes no records.
        """
        made = load_release(path)
        source_of_records(made)
        asked, relation = made.options, Neighbours.of_options(made.options)
        own = asked["mechanism"].get("options", asked["mechanism"])  # what auto passes on
        alike = ("epsilon", "delta", "rows", "records", "accountant")
        named = {name: asked[name] for name in alike if name in asked}
        named |= {"neighbours": relation.value, "unit": relation.unit, "weight": relation.weight}
        named |= {"schema": made.schema, "mechanism": made.mechanism, "queries": made.workload}
        named["means"] = [one.column for one in made.means] or None
        found = cls(options={name: own[name] for name in own if own[name] is not None}, **named)
        found.release_ = made
        found._kind = FrameKind.of(like)
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the constructor's parameters by name; ``deep`` makes no difference."""
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **params: Any) -> Synthesizer:
        """Change parameters for the next `fit`; `ValueError` if there is none of a name."""
        for name, value in params.items():
            if name not in PARAMETERS:
                close = did_you_mean(name, [*PARAMETERS])
                raise ValueError(f"Synthesizer has no parameter {name!r}{close}")
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn has to know of an estimator, as its own checks ask for it."""
        from sklearn.utils import InputTags, Tags, TargetTags

        columns = InputTags(sparse=True, categorical=True, string=True, allow_nan=True)
        own = {"input_tags": columns, "no_validation": True, "non_deterministic": True}
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), **own)

    def __repr__(self) -> str:
        return f"Synthesizer({', '.join(f'{name}={x!r}' for name, x in self._given().items())})"

    def _given(self) -> dict[str, Any]:
        """Return the parameters that are not as the constructor has them by default."""
        return {n: x for n, x in self.get_params().items() if x is not PARAMETERS[n].default}


def _parameters() -> dict[str, inspect.Parameter]:
    """Return the constructor's parameters: those of `release`, objects by their fields."""
    own = inspect.signature(release).parameters
    left_out = ("table", "guarantee", "run", "keywords")
    defaults = {name: each.default for name, each in own.items() if name not in left_out}
    for kind, names in KEYWORDS.items():
        of_fields = {each.name: each.default for each in fields(kind)}
        defaults |= {name: of_fields[field] for name, field in names.items()}
    defaults["progress"] = None  # a copy must not copy an object
    first = {name: defaults.pop(name) for name in ("epsilon", "delta")}
    return {
        name: inspect.Parameter(name, _EITHER if name in first else _NAMED, default=default)
        for name, default in (first | defaults).items()
    }


_EITHER, _NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
PARAMETERS = _parameters()
SIGNATURE = inspect.Signature([*PARAMETERS.values()])
# scikit-learn and editors read it; the options are declared in `dualquery.requests`.
Synthesizer.__init__.__signature__ = SIGNATURE.replace(  # type: ignore[attr-defined]
    parameters=[inspect.Parameter("self", _EITHER), *PARAMETERS.values()]
)
