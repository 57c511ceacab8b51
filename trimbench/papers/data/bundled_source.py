"""Data sets that come with scikit-learn."""

from __future__ import annotations

from typing import Literal

from trimbench.papers.data.cache import Cache
from trimbench.papers.data.dataset import Dataset, build_dataset
from trimbench.papers.data.source import Source
from trimbench.papers.validation import settings


@settings
class BundledSource(Source):
    """A data set that comes with scikit-learn."""

    kind: Literal["bundled"] = "bundled"
    dataset: Literal["breast_cancer", "digits", "iris", "wine"]

    def load(self, name: str, cache: Cache) -> Dataset:
        """Load the data set from the installed package."""
        import pandas as pd
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{self.dataset}")(as_frame=True)
        classes = pd.Index([str(label) for label in bunch.target_names])
        target = pd.Categorical.from_codes(bunch.target.to_numpy(dtype=int), classes)
        return build_dataset(name, self.facts, bunch.data.assign(target=target), "target")
