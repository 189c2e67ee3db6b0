"""The mechanisms that the experiments on conjunctions compare, by the name in legends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BEST = "mwem-sampled"
"""The most accurate mechanism of the project."""


@dataclass(frozen=True)
class Contender:
    """A mechanism as it is compared.

    Parameters
    ----------
    mechanism
        Its name.
    accountant
        How its budget is counted.
    """

    mechanism: str
    accountant: str = "auto"


OURS, PAPERS, BEST_LABEL = "DualQuery", "DualQuery, paper's accounting", f"best: {BEST}"

CONTENDERS: Mapping[str, Contender] = {
    OURS: Contender("dualquery"),
    PAPERS: Contender("dualquery", "paper"),
    BEST_LABEL: Contender(BEST),
    "Gaussian noise": Contender("gaussian"),
    "independent columns": Contender("independent"),
    "uniform": Contender("uniform"),
    "zero record": Contender("zero"),
}
"""Label -> contender; the last four are the baselines."""

SEEDLESS = frozenset({"uniform", "zero record"})
"""They draw nothing that their answers depend on, and no budget changes them: one run is enough."""
