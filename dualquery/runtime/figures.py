"""Shares, errors and lists of texts as a person reads them."""

from __future__ import annotations

from collections.abc import Sequence


def share(value: float) -> str:
    """Return a share with four decimals, or with two digits where four decimals would hide it."""
    if value == 0 or abs(value) >= 0.001:
        return f"{value:.4f}"
    places = 1 - int(f"{value:e}".partition("e")[2])
    return f"{value:.{places}f}" if places <= 9 else f"{value:.1e}"


def percent(value: float) -> str:
    """Return a share in per cent with one decimal, or with two digits where that would hide it."""
    return f"{value:.1%}" if value == 0 or abs(value) >= 0.001 else f"{100 * value:.2g}%"


def some(texts: Sequence[str], most: int = 20) -> str:
    """Return the first of some texts, quoted, and how many more there are."""
    shown = ", ".join(map(repr, texts[:most]))
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most:,} more"
