"""The mechanisms that the experiments on conjunctions compare, by their names in legends."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

BEST = "auto"
"""The most accurate mechanism of the project."""


@dataclass(frozen=True)
class Contender:
    """A mechanism as it is compared."""

    mechanism: str  # its name
    accountant: str = "auto"  # how its budget is counted
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values for fields of its configuration."""


AS_PUBLISHED: Mapping[str, Any] = {"remembered_rounds": 1, "mixture": "equal", "burn_in": 0.0}
"""Options that make DualQuery the paper's Algorithm 1: a best response to the round's own draws,
and all records in equal shares."""

OURS = "DualQuery"
PAPERS, RECOUNTED = "Algorithm 1, paper's accounting", "Algorithm 1, our accounting"
"""The paper's game, as it was accounted for, and with the tightest accountant; `OURS` has the
latter, too, and remembers draws and fits shares."""

CONTENDERS: dict[str, Contender] = {
    OURS: Contender("dualquery"),
    RECOUNTED: Contender("dualquery", options=AS_PUBLISHED),
    PAPERS: Contender("dualquery", "paper", AS_PUBLISHED),
    BEST: Contender(BEST),
    "Gaussian noise": Contender("gaussian"),
    "independent columns": Contender("independent"),
    "uniform": Contender("uniform"),
    "zero record": Contender("zero"),
}
"""Label -> contender; the last four are the baselines."""

SEEDLESS = frozenset({"uniform", "zero record"})
"""They draw nothing that their answers depend on, and no budget changes them: one run is enough."""


def specified(labels: Iterable[str]) -> dict[str, Any]:
    """Return contenders as the parameter ``contenders`` of a run: plain values by label."""
    return {label: asdict(CONTENDERS[label]) for label in labels}
