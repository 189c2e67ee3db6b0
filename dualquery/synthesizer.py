"""The fit and sample that users of other synthesizers know."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dualquery.api import release
from dualquery.runtime.errors import BadInputError, did_you_mean

if TYPE_CHECKING:
    import polars as pl

    from dualquery.releases.folder import Release


class Synthesizer:
    """Makes synthetic rows from a private table.

    The mechanism makes a limited number of records (by default one a private row, 10,000 at most);
    `sample` repeats them, so its rows are no new combinations, and shares in them are multiples of
    one by that number.

    Parameters
    ----------
    epsilon
        Privacy budget.
    delta
        None for 1/n^2.
    options
        Anything else that `dualquery.release` takes, such as ``schema``, ``queries`` or
        ``mechanism``.

    Raises
    ------
    TypeError
        If `dualquery.release` takes no such option.

    Examples
    --------
    >>> from dualquery import Synthesizer
    >>> rows = Synthesizer(epsilon=1.0, schema="adult").fit_sample(table)  # doctest: +SKIP
    """

    def __init__(self, epsilon: float = 1.0, delta: float | None = None, **options: Any) -> None:
        known = [name for name in inspect.signature(release).parameters if name != "table"]
        for name in options:
            if name not in known:
                raise TypeError(f"Synthesizer has no option {name!r}{did_you_mean(name, known)}")
        self._options = {"epsilon": epsilon, "delta": delta, **options}
        self._release: Release | None = None

    def fit(self, table: Any) -> Synthesizer:
        """Spend the budget on a table; `sample` costs nothing after that.

        Warns when the result is not private, as it is without a declared ``schema``.
        """
        made = release(table, **self._options)
        if not made.privacy.private:
            warnings.warn(made.privacy.text(), stacklevel=2)
        self._release = made  # whatever comes now, it is paid for
        if made.records is None:
            raise BadInputError(
                f"mechanism {made.mechanism!r} makes no synthetic records; its answers are in the "
                "property release"
            )
        return self

    @property
    def release(self) -> Release:
        """The release behind the samples, with its privacy statement."""
        if self._release is None:
            raise BadInputError("call fit before sample")
        return self._release

    def sample(self, n: int, *, seed: int | None = None) -> pl.DataFrame:
        """Return ``n`` rows in the user's columns, drawn evenly from the synthetic records.

        Each record is taken equally often, but for a random remainder, in random order: rows
        repeat as soon as ``n`` exceeds the number of records.
        """
        made = self.release
        if n < 0 or made.records is None:
            raise BadInputError(f"cannot sample {n} rows; ask for 0 or more")
        generator = np.random.default_rng(seed)
        records = len(made.records)
        whole = np.repeat(np.arange(records), n // records)
        rest = generator.choice(records, size=n % records, replace=False)
        chosen = generator.permutation(np.concatenate([whole, rest]))
        return made.schema.decode(made.records[chosen])

    def fit_sample(self, table: Any, n: int | None = None) -> pl.DataFrame:
        """Fit and sample, by default as many rows as the release says that the table has."""
        self.fit(table)
        return self.sample(self.release.n if n is None else n)
