"""What a project may add to the framework: data of a kind of its own, a source of data sets, a task."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from trimbench.reproduction import COUNT, Cell, Input, Inputs, Outcome, Table, dataset_of, groups, job, settings
from trimbench.reproduction.commands.arguments import Invocation
from trimbench.reproduction.data.cache import Cache
from trimbench.reproduction.data.dataset import Dataset, build_dataset
from trimbench.reproduction.data.sources import Source
from trimbench.reproduction.settings import validated


@settings
class Cards:
    cards: list[str]


@dataclass(frozen=True)
class Deck:
    """Data of a kind that the framework does not know: its declaration has everything."""

    name: str
    cards: list[str]
    where: str = "its declaration"

    def hash(self, cache: Cache) -> str:
        return hashlib.sha256("".join(self.cards).encode()).hexdigest()

    def road(self, cache: Cache) -> str:
        return self.where

    def copies(self, cache: Cache) -> list[list[Path]]:
        return []

    def fetch(self, cache: Cache, *, verify: bool | None) -> str:
        return "nothing to fetch"


def declare_deck(name: str, mapping: Mapping[str, object]) -> Deck:
    return Deck(name, validated(Cards, mapping, f"deck {name!r}").cards)


@settings
class Dice(Source):
    """A source of data sets that the framework does not have."""

    kind: Literal["dice"] = "dice"
    sides: int = 6

    def load(self, name: str, cache: Cache) -> Dataset:
        faces = range(1, self.sides + 1)
        table = pd.DataFrame({"face": [*map(float, faces)], "even": ["no" if face % 2 else "yes" for face in faces]})
        return build_dataset(name, self.facts, table, "even")

    def copies(self, cache: Cache) -> list[list[Path]]:
        return []


@settings
class Counts:
    deck: str
    dataset: str

    def cells(self, inputs: Inputs) -> list[Cell]:
        declared = inputs.declared("deck", self.deck)
        deck = Input("deck", self.deck, declared, declare_deck(self.deck, declared).hash(inputs.cache))
        return [Cell.of({"deck": self.deck}, count, deck=deck, dataset=inputs.dataset(self.dataset))]

    def outcome(self, rows: pd.DataFrame) -> Outcome:
        lines = [{"cards": done["cards"].iloc[0], "faces": done["faces"].iloc[0]} for _, done in groups(rows, "deck")]
        return Outcome([Table.of("Counts", lines, {"cards": "d", "faces": "d"})])


@job(cards=COUNT, faces=COUNT)
def count(deck: Input, dataset: Input) -> dict[str, int]:
    declaration: Any = deck.declaration
    return {"cards": len(declaration.cards), "faces": len(dataset_of(dataset).features)}


def greet(invocation: Invocation) -> int:
    given = dict(vars(invocation)["values"])
    print(f"Good morning, {given['whom']}; {given['names']['first']}")  # noqa: T201
    return 3
