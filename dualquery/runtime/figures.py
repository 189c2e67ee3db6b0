"""Shares and errors as a person reads them."""

from __future__ import annotations


def share(value: float) -> str:
    """Return a share with four decimals, or with two digits where four decimals would hide it."""
    if value == 0 or abs(value) >= 0.001:
        return f"{value:.4f}"
    places = 1 - int(f"{value:e}".partition("e")[2])
    return f"{value:.{places}f}" if places <= 9 else f"{value:.1e}"


def percent(value: float) -> str:
    """Return a share in per cent with one decimal, or with two digits where that would hide it."""
    return f"{value:.1%}" if value == 0 or abs(value) >= 0.001 else f"{100 * value:.2g}%"
