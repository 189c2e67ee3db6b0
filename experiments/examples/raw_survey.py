"""A made-up survey as surveys arrive: 24 columns, semicolons, Latin-1, odd codes."""

import datetime
from pathlib import Path

import numpy as np
import polars as pl

DISTRICTS = ("Nord", "Süd", "Ost", "West", "Mitte", "Höhe")
SCHOOLS = ("none", "primary", "secondary", "vocational", "university")


def write_raw_survey(path: Path, rows: int, seed: int = 7) -> None:
    """Write the file: columns that depend on each other, in the spellings of a real export."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(9.0, 5.2, rows), 18, 97).astype(int)
    woman = rng.random(rows) < 0.52
    school = np.clip(rng.normal(2.6 - (age - 45) / 60, 1.0, rows).round(), 0, 4).astype(int)
    works = rng.random(rows) < np.where(age < 66, 0.78, 0.08)
    income = np.exp(rng.normal(6.6 + 0.22 * school + 0.5 * works, 0.55, rows))
    smoker = rng.random(rows) < 0.32 - 0.05 * school
    health = np.clip((5.6 - age / 40 - 0.6 * smoker + rng.normal(0, 0.8, rows)).round(), 1, 5)
    height = rng.normal(np.where(woman, 166, 179), 7, rows).round()
    weight = (23 + age / 25 + rng.normal(0, 3.5, rows)) * (height / 100) ** 2
    adults = 1 + (rng.random(rows) < 0.62) + (rng.random(rows) < 0.08)
    children = np.where(age < 60, rng.poisson(0.7, rows), 0)
    rent = np.where(rng.random(rows) < 0.45, 0, rng.normal(640, 220, rows).clip(120))
    first = datetime.date(2025, 3, 3)
    asked = [first + datetime.timedelta(days=int(day)) for day in rng.integers(0, 120, rows)]
    minutes = rng.integers(8 * 60, 20 * 60, rows)
    district = rng.choice(len(DISTRICTS), rows, p=(0.3, 0.1, 0.2, 0.15, 0.2, 0.05))
    trust = {
        f"trust_{of}": np.where(
            rng.random(rows) < 0.04,
            99,
            np.clip((3 + (school - 2) / 2 + rng.normal(0, 1, rows)).round(), 1, 5),
        ).astype(int)
        for of in ("courts", "press", "police", "parliament", "science")
    }

    def unless(share: float, text: str, values: list[str]) -> list[str]:
        gone = rng.random(rows) < share
        return [text if lost else value for lost, value in zip(gone, values, strict=True)]

    frame = pl.DataFrame(
        {
            "respondent_id": rng.permutation(10**6)[:rows],
            "asked_on": [f"{day:%d.%m.%Y}" for day in asked],
            "asked_at": [f"{m // 60:02}:{m % 60:02}" for m in minutes],
            "year_of_birth": 2025 - age,
            "sex": unless(0.01, "n/a", np.where(woman, "F", "M").tolist()),
            "district": [DISTRICTS[d] for d in district],
            "postcode": [f"0{4000 + 10 * d + p}" for d, p in zip(district, age % 7, strict=True)],
            "school": [SCHOOLS[s] for s in school],
            "works": np.where(works, "yes", "no"),
            "hours": np.where(works, rng.choice([20, 30, 38, 40, 40, 40, 45, 60], rows), 0),
            "income_eur": unless(0.07, "refused", [f"{x:.2f}".replace(".", ",") for x in income]),
            "rent_eur": [f"{x:.0f}" for x in rent],
            "adults": adults,
            "children": children,
            "height_cm": height.astype(int),
            "weight_kg": [f"{x:.1f}".replace(".", ",") for x in weight],
            "smoker": np.where(smoker, "1", "0"),
            "health": health.astype(int),
            **trust,
            "remarks": [f"remark {i} of the interviewer" for i in range(rows)],
        }
    )
    assert frame.width == 24
    text = frame.write_csv(separator=";")
    path.write_text(text, encoding="latin-1")
