"""DualQuery (Gaboardi, Gallego Arias, Hsu, Roth and Wu, ICML 2014), Algorithm 1.

The query player runs multiplicative weights over the workload, closed under complement, inside the
private room. Each round it shows a sample of queries, and the record player answers with the one
record that satisfies most of them. The records are the synthetic data. Two steps go beyond the
paper, both post-processing of what is public: a best response looks at the draws of earlier rounds
too (`transcript`), and the records' shares are fitted to all draws (`shares`). With
``remembered_rounds=1, mixture="equal"`` neither is taken.

Two notes on the paper's text. Algorithm 1 prints the update as ``exp(-eta A(q, x))`` with a payoff
that the query player maximises; as in the authors' own code, the weight of a query must *rise* with
``q(D) - q(x)``. And round 1 needs no sample: the weights are uniform, a query and its complement
cancel for every record, and any public record is a best response in expectation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualquery.estimates.expected import ExpectedError
from dualquery.mechanisms.dualquery.game_forecast import game_bytes, game_error
from dualquery.mechanisms.dualquery.game_options import GameOptions
from dualquery.mechanisms.dualquery.parameters import Chosen, choose_parameters
from dualquery.mechanisms.dualquery.record_player import RecordPlayer, rehearse
from dualquery.mechanisms.dualquery.responses import solver_totals, trace_line
from dualquery.mechanisms.dualquery.shares import in_shares, likelihood_shares
from dualquery.mechanisms.dualquery.transcript import Transcript
from dualquery.mechanisms.protocol import Budget, Details, Mechanism, Outcome, Plan, Session, Task
from dualquery.queries.disjunctions import Disjunctions
from dualquery.queries.family import Queries, disjunctions_of
from dualquery.room.curator import Curator
from dualquery.room.exclusive import require_exclusive
from dualquery.runtime.resources import check_memory, workers
from solvers import guarded

_POLICY = ("rounds", "samples", "eta", "alpha", "remembered_rounds", "mixture", "burn_in")
"""Options that must be left to the policy for the error to be predictable: see `game_forecast`."""

TIME_OF_FIT = 0.2  # of that of all rounds (measured: 0.1 to 0.35); only the progress rests on it


@dataclass(frozen=True)
class GameDetails(Details):
    """The game to play: the user's choices, and what was chosen for the rest."""

    options: GameOptions
    chosen: Chosen

    def parameters(self) -> Mapping[str, Any]:
        """Return the game's parameters, and who chose them."""
        options, chosen = self.options, self.chosen
        return {
            **chosen.schedule.parameters(),
            "chosen_by": chosen.reason,
            "solver": chosen.solver,
            "solver_timeout": options.solver_timeout,
            "free": options.free,
            "memory": chosen.remembered_rounds,
            "mixture": options.mixture,
            "burn_in": options.burn_in,
            "effort": options.effort,
        }


@dataclass(frozen=True, kw_only=True)
class DualQuery(GameOptions, Mechanism[GameDetails]):
    """Multiplicative weights over queries; records are best responses."""

    name: ClassVar[str] = "dualquery"
    pure: ClassVar[bool] = False

    def statistics(self, queries: Queries) -> Disjunctions:
        """Hold the queries' answers, mapped to [0, 1]; refuse families without best responses."""
        return disjunctions_of(queries)

    def plan(self, task: Task, budget: Budget) -> Plan[GameDetails]:
        """Fix rounds, samples and step from public facts (see `parameters`).

        `BadInputError` if no best response can be posed for the family, the parameters do not fit
        the budget, or the game does not fit into memory.
        """
        # What cannot be posed, or whose sums may exceed 1, is refused before rows are read.
        require_exclusive(disjunctions_of(task.queries))
        chosen = choose_parameters(self, task, budget)
        game = chosen.schedule
        remedy = "fewer rounds" if self.alpha is None else "a larger alpha"
        plan = Plan(game, chosen.accountant, GameDetails(self, chosen))
        check_memory(
            self.bytes_needed(task, plan),
            f"a game of {game.rounds:,} rounds on {len(task.queries):,} queries and "
            f"{task.queries.domain.bits:,} bits",
            f"ask fewer queries, or set {remedy}",
        )
        return plan

    def expected_error(self, task: Task, plan: Plan[GameDetails]) -> ExpectedError | None:
        """Estimate the error; None for a game whose parameters are not all the policy's."""
        usual = DualQuery()
        own = any(getattr(self, name) != getattr(usual, name) for name in _POLICY)
        return None if own else game_error(task, plan.details.chosen.schedule, self.effort)

    def bytes_needed(self, task: Task, plan: Plan[GameDetails]) -> int:
        """Return the bytes of the game (see `game_bytes`)."""
        chosen = plan.details.chosen
        fitted = self.mixture == "fitted"
        return game_bytes(task.queries, chosen.schedule, chosen.remembered_rounds, fitted=fitted)

    def run(
        self, task: Task, plan: Plan[GameDetails], curator: Curator, session: Session
    ) -> Outcome:
        """Play the game."""
        chosen, game = plan.details.chosen, plan.details.chosen.schedule
        # As the room plays it, where the number of rows was stated and is measured by now.
        step = game.step * (task.n / game.n)
        transcript = Transcript(
            disjunctions_of(task.queries), step, chosen.remembered_rounds, game.rounds,
            task.rules,
        )  # fmt: skip
        solver = guarded(chosen.solver)
        generator = np.random.default_rng(session.public_seed)
        player = RecordPlayer(
            task.queries.domain, solver, self.solver_timeout, session.threads, self.free, generator,
            task.rules,
        )  # fmt: skip
        trace: list[dict[str, Any]] = []
        fit = 0 if self.mixture == "equal" else int(TIME_OF_FIT * game.rounds)
        steps = game.rounds + fit

        rehearse(chosen.solver, task, game.samples, self.solver_timeout)
        record = player.first_record()
        curator.begin_game(game.step)
        # The room and the transcript look at the same record, each at its own time.
        with workers(session.threads, 2) as beside:
            for number in range(2, game.rounds + 1):
                if curator.cut_short():
                    break
                seen = beside.submit(transcript.play, record)
                curator.reweight(record)
                sample = curator.sample_queries(game.samples)
                seen.result()
                transcript.show(sample)
                problem = transcript.best_response()
                response = player.recalled(number, problem, record, session)
                record = response.record
                trace.append(trace_line(number, game.samples, problem, response))
                session.progress(number, steps)
        transcript.play(record)
        solver.close()

        def fitted(done: int, of: int) -> None:
            session.progress(game.rounds + fit * done // of, steps)

        first = int(self.burn_in * len(transcript.records))
        synthetic = transcript.records[first:]
        if self.mixture == "fitted":
            shares = likelihood_shares(transcript, first, session.threads, fitted)
            synthetic = in_shares(synthetic, shares)
        answers = task.queries.answers_on(synthetic, threads=session.threads)
        told = f"The parameter eta goes with the stated number of rows; {step:.6g} was played."
        remarks = () if task.n == game.n else (told,)
        return Outcome(answers, synthetic, tuple(trace), solver_totals(trace), remarks=remarks)
