"""What the arithmetic of the private room takes for granted, for the statement of a release."""

from __future__ import annotations

from dualquery.privacy.events import (
    GaussianNoise,
    LaplaceNoise,
    RandomizedReport,
    SampledQueries,
    Schedule,
    events_of,
)

_SENTENCES = {
    SampledQueries: "Draws by weight are exact, from 80-bit integer weights by AES-256-CTR words "
    "seeded by the operating system; arithmetic is IEEE double precision, and the rounding of the "
    "weights, 2^-44 of each, is charged.",
    RandomizedReport: "Each randomized report is one 64-bit word of AES-256-CTR seeded by the "
    "operating system; its probabilities are whole multiples of 2^-64, rounded towards more "
    "privacy.",
    GaussianNoise: "Gaussian noise is discrete Gaussian noise from OpenDP's exact sampler on a "
    "grid of 2^-39 of its scale or less; its distance from rounded continuous noise is charged "
    "where the accountant needs the latter. Scales and sensitivities are computed in double "
    "precision.",
    LaplaceNoise: "Laplace noise is integer noise from OpenDP's exact sampler, added to integer "
    "counts; its scale is computed in double precision.",
}


def numerical_assumptions(schedule: Schedule) -> tuple[str, ...]:
    """Return the assumptions of the room's arithmetic for the release, one sentence each."""
    kinds = {type(event) for event in events_of(schedule)}
    return tuple(sentence for kind, sentence in _SENTENCES.items() if kind in kinds)
