"""The fit and sample that users of other synthesizers know."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from dualquery.api import release
from dualquery.data.frames import FrameKind
from dualquery.releases.sampling import source_of_records
from dualquery.runtime.errors import BadInputError, did_you_mean

if TYPE_CHECKING:
    from dualquery.releases.folder import Release


class Synthesizer:
    """Makes synthetic rows from a private table.

    Rows are drawn from the model that the release keeps. A mechanism that fits none, such as
    ``dualquery``, makes a limited number of records instead, and `sample` repeats these.

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
        self._kind = FrameKind(False, {})

    def fit(self, table: Any) -> Synthesizer:
        """Spend the budget on a table; `sample` costs nothing after that.

        Warns when the result is not private, as it is without a declared ``schema``.
        """
        made = release(table, **self._options)
        if not made.privacy.private:
            warnings.warn(made.privacy.text(), stacklevel=2)
        self._release = made  # whatever comes now, it is paid for
        self._kind = FrameKind.of(table)
        source_of_records(made)
        return self

    @property
    def release(self) -> Release:
        """The release behind the samples, with its privacy statement."""
        if self._release is None:
            raise BadInputError("call fit before sample")
        return self._release

    def sample(self, n: int, *, seed: int | None = None) -> Any:
        """Return ``n`` rows in the user's columns: see `Release.sample`.

        They are a pandas frame if the table was one, else a Polars frame, and have the types that
        the columns of such a table had; categorical ones have the schema's categories.
        """
        return self._kind.made_of(self.release.sample(n, seed=seed), self.release.schema)

    def fit_sample(self, table: Any, n: int | None = None) -> Any:
        """Fit and sample, by default as many rows as the release says that the table has."""
        self.fit(table)
        return self.sample(self.release.n if n is None else n)
