"""OR-Tools' CP-SAT."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from solvers.backends.formulated import Formulated
from solvers.constraints import Rows
from solvers.formulation import Formulation
from solvers.kernel_solver import Ending, SearchResult
from solvers.limits import SearchLimits
from solvers.problem import BestResponse
from solvers.protocol import Capability
from solvers.scaling import integer_row, integer_scaled

_ENDINGS = {
    "OPTIMAL": Ending.PROVEN,
    "FEASIBLE": Ending.STOPPED,
    "UNKNOWN": Ending.STOPPED,
    "INFEASIBLE": Ending.INFEASIBLE,
    "MODEL_INVALID": Ending.FAILED,
}
"""Name of the ``CpSolverStatus`` -> ours."""


class CpSat(Formulated):
    """Clause learning with a linear relaxation, by CP-SAT.

    Always one worker at ``linearization_level`` 2: with more, the workers' own settings override
    the level, and the linear relaxation, which gives the proofs, is lost. The objective is in
    integers: see :func:`solvers.scaling.integer_scaled`.
    """

    name = "cpsat"
    capabilities = Formulated.capabilities | {Capability.HINT, Capability.SEED}
    module = "ortools"
    distribution = "ortools"
    imports = ("ortools.sat.python.cp_model",)
    least_seconds_per_term = 25e-6

    def search(
        self, kernel: BestResponse, limits: SearchLimits, start: NDArray[np.uint8] | None
    ) -> SearchResult:
        """Solve the model, from the start if there is one."""
        from ortools.sat.python import cp_model

        weights, scale, error = integer_scaled(kernel.weights)
        model = cp_model.CpModel()
        model.proto.parse_text_format(_model_text(kernel, weights, self.formulation, start))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2
        # This part of the presolve, over at-most-one and linear constraints that share variables,
        # cuts off optima in release 9.15 (google/or-tools issue 5293; a test holds a case).
        solver.parameters.presolve_inclusion_work_limit = 0
        solver.parameters.random_seed = limits.seed % 2**31
        solver.parameters.catch_sigint_signal = False
        solver.parameters.max_time_in_seconds = limits.remaining()
        solver.parameters.max_deterministic_time = limits.work
        solver.parameters.absolute_gap_limit = scale * limits.gap
        found: list[float] = []

        class Watch(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
            def on_solution_callback(self) -> None:
                found.append(limits.elapsed())

        status = solver.solve(model, Watch())
        ending = _ENDINGS.get(solver.status_name(status), Ending.FAILED)
        response = solver.response_proto
        if len(response.solution) == 0:
            # Without a solution the response's bound may be a mere 0: not set.
            return SearchResult(ending)
        # The solver minimises the negative; the error is what rounding the weights may have hidden.
        bound = kernel.constant + (error - solver.best_objective_bound) / scale
        values = np.fromiter(response.solution, np.int64, len(response.solution))
        record = values[: kernel.attributes].astype(np.uint8)
        return SearchResult(ending, record, bound, found[-1] if found else None)


def _model_text(
    kernel: BestResponse,
    weights: NDArray[np.int64],
    formulation: Formulation,
    start: NDArray[np.uint8] | None,
) -> str:
    """Return the model as a text protocol buffer; a negated literal is ``~`` of its variable."""
    attributes = kernel.attributes
    widths = (kernel.terms >= 0).sum(axis=1).tolist()
    literals = np.where(kernel.terms & 1, ~(kernel.terms >> 1), kernel.terms >> 1).tolist()
    aggregated = formulation is Formulation.AGGREGATED
    lines = ["variables { domain: [0, 1] }\n" * (attributes + len(weights))]
    for term, (row, width, positive) in enumerate(
        zip(literals, widths, (weights > 0).tolist(), strict=True), attributes
    ):
        true = row[:width]
        if positive and aggregated:
            lines.append(_at_least_times(true, term))
        elif positive:
            lines.append(
                f"constraints {{ enforcement_literal: {term} bool_and {{ literals: {true} }} }}"
            )
        else:
            false = [~literal for literal in true]
            lines.append(f"constraints {{ bool_or {{ literals: {[term, *false]} }} }}")
    members = kernel.groups.members.tolist()
    for first, last in pairwise(kernel.groups.indptr.tolist()):
        lines.append(f"constraints {{ exactly_one {{ literals: {members[first:last]} }} }}")
    lines += _rows_text(kernel.rows)
    if len(weights):
        columns = list(range(attributes, attributes + len(weights)))
        lines.append(f"objective {{ vars: {columns} coeffs: {(-weights).tolist()} }}")
    if start is not None:
        # All variables: a hint that is complete is a first incumbent, a partial one has to be
        # completed by search.
        hinted = list(range(attributes + len(weights)))
        values = np.concatenate((start, kernel.satisfied(start))).tolist()
        lines.append(f"solution_hint {{ vars: {hinted} values: {values} }}")
    return "\n".join(lines)


def _at_least_times(true: list[int], term: int) -> str:
    """``sum of literals - k c >= 0``."""
    variables = [literal if literal >= 0 else ~literal for literal in true]
    signs = [1 if literal >= 0 else -1 for literal in true]
    negated = signs.count(-1)
    return (
        f"constraints {{ linear {{ vars: {[*variables, term]} coeffs: {[*signs, -len(true)]} "
        f"domain: [{-negated}, {len(true)}] }} }}"
    )


def _rows_text(rows: Rows) -> Iterator[str]:
    """Yield one constraint a row; those of small integers need no scaling."""
    total = rows.totals
    plain = (rows.sums(rows.coefficients != np.rint(rows.coefficients)) == 0) & (total < 2**52)
    lower = np.maximum(np.ceil(rows.lower - rows.slack), -total)
    upper = np.minimum(np.floor(rows.upper + rows.slack), total)
    attributes = rows.attributes.tolist()
    coefficients = np.rint(np.clip(rows.coefficients, -(2.0**52), 2.0**52)).astype(np.int64)
    signed = coefficients.tolist()
    ends = pairwise(rows.indptr.tolist())
    for row, (first, last) in enumerate(ends):
        if plain[row]:
            numbers = signed[first:last]
            least = int(lower[row])
            most = int(upper[row])
        else:
            integers, least, most = integer_row(rows[row])
            numbers = integers.tolist()
        if least > most:
            yield "constraints { bool_or { literals: [] } }"
        else:
            variables = f"vars: {attributes[first:last]} coeffs: {numbers}"
            yield f"constraints {{ linear {{ {variables} domain: [{least}, {most}] }} }}"
