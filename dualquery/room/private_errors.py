"""The one gate through which exact numbers leave the room: into the operator's log, on their word.

True errors of a model are exact answers in another form. No result, file or exit code holds them,
and no guarantee covers what is chosen after seeing them. An operator who wants them says so in as
many words (``--show-private-errors``, ``show_private_errors=True``): being verbose is not enough.

Nothing else in the room logs, prints, warns or writes (`tests/room/test_private_errors.py`).
"""

import logging

import numpy as np
from numpy.typing import NDArray

from dualquery.queries.family import Statistic
from dualquery.room.private_data import PrivateData

_log = logging.getLogger(__name__)

SEEN = (
    "True errors were shown to the operator while this release was made (--show-private-errors): "
    "what is chosen after seeing them is not covered by the guarantee."
)
"""What a release says that was made with the gate open; a public fact."""


def show_errors(
    data: PrivateData, model: NDArray[np.float64], label: str, queries: Statistic
) -> None:
    """Log how far a model's answers, float64 ``(m,)``, are from the true ones.

    For `Curator.log_errors` only, which asks whether it may. ``label`` is public: what the answers
    are. Other ``queries`` than the held ones are counted in a pass of their own.
    """
    counts = data.counts if queries is data.queries else queries.counts(data.rows, data.threads)
    off = np.abs(model - counts * (queries.step / data.rows.n))
    _log.warning(
        "NOT PRIVATE, for the operator only: %s: max error %.4f, mean error %.4f",
        label,
        off.max(),
        off.mean(),
    )
