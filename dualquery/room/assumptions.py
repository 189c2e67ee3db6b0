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


def numerical_assumptions(schedule: Schedule) -> tuple[str, ...]:
    """Return the assumptions of the room's arithmetic for the release, one sentence each."""
    sentences = []
    events = events_of(schedule)
    if any(isinstance(event, SampledQueries) for event in events):
        sentences.append(
            "Draws by weight are exact, from 80-bit integer weights by AES-256-CTR words seeded "
            "by the operating system; arithmetic is IEEE double precision, and the rounding of the "
            "weights, 2^-44 of each, is charged."
        )
    if any(isinstance(event, RandomizedReport) for event in events):
        sentences.append(
            "Each randomized report is one 64-bit word of AES-256-CTR seeded by the operating "
            "system; its probabilities are whole multiples of 2^-64, rounded towards more privacy."
        )
    if any(isinstance(event, GaussianNoise) for event in events):
        sentences.append(
            "Gaussian noise is discrete Gaussian noise from OpenDP's exact sampler on a grid of "
            "2^-39 of its scale or less; its distance from rounded continuous noise is charged "
            "where the accountant needs the latter. Scales and sensitivities are computed in "
            "double precision."
        )
    if any(type(event) is LaplaceNoise for event in events):
        sentences.append(
            "Laplace noise is integer noise from OpenDP's exact sampler, added to integer counts; "
            "its scale is computed in double precision."
        )
    return tuple(sentences)
