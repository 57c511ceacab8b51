"""A table with everything that goes wrong in tables."""

from __future__ import annotations

import numpy as np


def messy_table(n_rows: int, seed: int = 0) -> bytes:
    """Return a file with decimal commas, dates, many cities, "<5", missing values, a leak and a repeated row."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(["healthy", "ill", "unclear"], n_rows, p=[0.6, 0.3, 0.1])
    is_ill = classes == "ill"
    dates = rng.integers((1, 1, 2010), (29, 13, 2024), size=(n_rows, 3))
    columns = {
        "patient": [f"P{row:06d}" for row in range(n_rows)],
        "admitted": [f"{day:02d}.{month:02d}.{year}" for day, month, year in dates],
        "city": [f"Stadt {city}" for city in rng.integers(0, 3000, n_rows)],
        "crp": np.where(rng.random(n_rows) < 0.04, "<5", _commas(rng.gamma(2, 10, n_rows) + 5, 1)).tolist(),
        "age": [str(age) for age in rng.integers(18, 95, n_rows)],
        "smoker": rng.choice(["ja", "nein", "Ja"], n_rows, p=[0.3, 0.68, 0.02]).tolist(),
        "ward": rng.choice(["Nord", "Süd", "Ost"], n_rows).tolist(),
        "lab1": _commas(rng.normal(3, 3, n_rows) + is_ill, 3),
        "lab2": _commas(rng.normal(1000, 300, n_rows) + 90 * is_ill, 2),
        "code": [{"healthy": "0", "ill": "1", "unclear": "2"}[name] for name in classes],
        "study": ["x"] * n_rows,
        "diagnosis": classes.tolist(),
    }
    for name in set(columns) - {"patient", "code", "study"}:
        for row in rng.choice(n_rows, n_rows // 50, replace=False):
            columns[name][row] = ("", "NA", "?")[row % 3]
    rows = list(zip(*columns.values(), strict=True))
    rows[100] = rows[99]
    return "\n".join(";".join(row) for row in [tuple(columns), *rows]).encode("cp1252")


def _commas(values: np.ndarray, decimals: int) -> list[str]:
    return [f"{value:.{decimals}f}".replace(".", ",") for value in values]
