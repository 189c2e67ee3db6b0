"""What measured numbers are of, by definition."""

from __future__ import annotations

import numpy as np

from dualquery.data.domain import Domain
from dualquery.estimates.evidence import Evidence
from dualquery.estimates.measurements import Measurements


def functionals(measurements: Measurements, rows: np.ndarray, domain: Domain) -> np.ndarray:
    """Return each number's value on every row, uint8 ``(n, bits)``: float64, ``(m, n)``."""
    sizes = np.maximum(domain.sizes, 2)
    values = np.ones((len(measurements), len(rows)))
    for number, (start, stop) in enumerate(
        zip(measurements.starts[:-1], measurements.starts[1:], strict=True)
    ):
        for code in measurements.factors[start:stop].tolist():
            if code >= 0:
                values[number] *= rows[:, code >> 1] ^ (code & 1)
            elif code > -(2**30):
                values[number] *= 1.0 - 2.0 * rows[:, -code - 1]
            else:
                bit = -(2**30) - code
                values[number] *= 1.0 - sizes[domain.column_of_bit[bit]] * rows[:, bit]
    return values


def on_cells(evidence: Evidence) -> np.ndarray:
    """Return each number's value on every cell of its columns, in C order: ``(m, cells)``."""
    lines = np.ones((len(evidence.values), 1))
    for factors, chosen in zip(evidence.factors, evidence.chosen, strict=True):
        lines = (lines[:, :, None] * factors[chosen][:, None, :]).reshape(len(lines), -1)
    return lines - evidence.less[:, None]
