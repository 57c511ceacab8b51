"""Networks against the data that they come from: one that a test learned by hand, and those of the authors."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import trimbench as tb
from tests.networks.ace_encoder import encode_ace
from trimbench.papers.trimming.authors_networks import AuthorsNetworks, Recipe, _blocks, _written
from trimbench.reproduction.configuration import Catalogue
from trimbench.reproduction.execution.job import arguments_of
from trimbench.reproduction.settings import ConfigurationError, validated

from ..command_line import PROJECT, Command, table_of, write
from ..experiments import inputs_of, keys_of, rows_of

RECIPE = {"dataset": "made", "positive": "ill", "cut": "mean", "smoothing": 0.5, "missing": "coin", "digits": "unknown"}
RECIPE |= {"state_1": {"pain": "no"}}


def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Catalogue, pd.DataFrame, list[int]]:
    """Return a data set and a network that was learned from it by hand, with three cells of pain filled."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {
            "age": rng.integers(20, 80, size=40).astype(float),
            "pain": rng.choice(["no", "yes"], size=40),
            "state": rng.choice(["ill", "well", "worse"], size=40),
        }
    )
    data.loc[[3, 7, 8], "pain"] = None
    filled = [1, 0, 1]
    ones = [np.array(data["age"] > data["age"].mean()), np.array(data["pain"] == "no")]
    ones[1][[3, 7, 8]] = filled
    classes = [(data["state"] == "ill").to_numpy(), (data["state"] != "ill").to_numpy()]
    tables = [[[1 - p, p] for p in ((one[rows].sum() + 0.5) / (rows.sum() + 1) for rows in classes)] for one in ones]
    prior = (classes[0].sum() + 0.5) / 41
    model = tb.NaiveBayes([prior, 1 - prior], tables, feature_names=["H1", "H2"], class_variable="H")
    texts = dict(zip(("cnf", "lmap"), encode_ace(model), strict=True))
    texts["search"] = "$ 2 0.5 1\nd H\nf H1 1\nf H2 1\n"
    write(folder / "cache/files/own", {f"own.net.{end}": text for end, text in texts.items()})
    monkeypatch.setenv("TRIMBENCH_CACHE", str(folder / "cache"))
    files = {
        end: {
            "path": f"own/own.net.{end}",
            "url": f"https://example.org/own.net.{end}",
            "sha256": sha256((folder / f"cache/files/own/own.net.{end}").read_bytes()).hexdigest(),
        }
        for end in texts
    }
    network = {"format": "ace", "files": files, "target": "H", "positive": "0", "facts": {"features": 2}}
    write(folder / "conf/network", {"own.yaml": yaml.safe_dump(network)})
    write(folder / "conf/dataset", {"made.yaml": "kind: csv\npath: made.csv\ntarget: state\n"})
    data.to_csv(folder / "conf/dataset/made.csv", index=False)
    return Catalogue((folder / "conf", *PROJECT.folders)), data, filled


def test_a_network_that_was_learned_by_the_recipe_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue, data, filled = made(tmp_path, monkeypatch)
    experiment = validated(AuthorsNetworks, {"networks": ["own"], "recipes": {"own": RECIPE}}, "experiment")
    outcome = experiment.outcome(rows_of(experiment, catalogue))
    (line,) = outcome.tables[0].frame.to_dict("records")
    assert (line["parameters"], line["equal"], line["rows"]) == (10, 10, 40)
    assert line["state 0"] == f"ill ({(data['state'] == 'ill').sum()})"
    assert line["largest residual"] < 1e-12
    assert line["counts off"] < 1e-9
    assert line["of the better state, none filled"] > 0.01
    assert [note.partition(",")[0] for note in outcome.notes[-2:]] == ["Of own", "Of own"]
    (gaps,) = outcome.tables[1].frame.to_dict("records")
    assert (gaps["missing cells"], gaps["in state 1"]) == (3, sum(filled))
    # Every outcome of three coins is at least as uneven as two to one.
    assert gaps["probability of the total"] == pytest.approx(1.0)
    every = outcome.tables[2].frame
    prior = every[every["feature"] == "H"].set_index("state")
    assert prior["observed"].sum() == 40
    for given, classes in enumerate((data["state"] == "ill", data["state"] != "ill")):
        for state in (0, 1):
            (row,) = every.query(f"feature == 'H1' and given == {given} and state == {state}").to_dict("records")
            high = data["age"] > data["age"].mean()
            assert row["observed"] == row["count"] == (high[classes] == bool(state)).sum()


def test_another_cut_or_class_is_not_taken_for_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue, _, _ = made(tmp_path, monkeypatch)
    changes: list[dict[str, Any]] = [{"positive": "well"}, {"state_1": {}}, {"smoothing": 1.0}]
    for change in changes:
        settings = {"networks": ["own"], "recipes": {"own": RECIPE | change}}
        experiment = validated(AuthorsNetworks, settings, "experiment")
        outcome = experiment.outcome(rows_of(experiment, catalogue))
        (line,) = outcome.tables[0].frame.to_dict("records")
        assert not any(note.startswith("Of own") for note in outcome.notes), change
        assert line["equal"] < 10, change
        assert line["largest residual"] > 1e-3, change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"missing": "none"}, "missing must be 'coin' for 'made': 3 of its cells are missing"),
        (
            {"state_1": {"pain": "often"}},
            r"state_1 must name one of two labels of column 'pain', got 'often' of \['no'",
        ),
        ({"cut": "none"}, "cut must be 'mean' where a column holds numbers, as 'age' does, got 'none'"),
        ({"dataset": "example_simulated", "positive": "1"}, "one feature for each of the 10 columns .* got 2 features"),
    ],
)
def test_data_that_do_not_fit_the_network_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], message: str
) -> None:
    catalogue, _, _ = made(tmp_path, monkeypatch)
    experiment = validated(AuthorsNetworks, {"networks": ["own"], "recipes": {"own": RECIPE | change}}, "experiment")
    with pytest.raises(ValueError, match=message):
        rows_of(experiment, catalogue)


def test_a_network_without_a_list_of_parameters_is_refused() -> None:
    settings = {
        "networks": ["cpcs54"],
        "recipes": {"cpcs54": RECIPE | {"dataset": "example_simulated", "positive": "1"}},
    }
    experiment = validated(AuthorsNetworks, settings, "experiment")
    (cell,) = experiment.cells(inputs_of())
    with pytest.raises(ValueError, match="network 'cpcs54' must have the format 'tables' or 'ace', which list"):
        _blocks(arguments_of(cell.job)["network"])


@pytest.mark.parametrize(
    ("ratio", "weight", "digits", "expected"),
    [
        (0.4402985, 0.44029, "truncated", 0.44029),
        (0.4402985, 0.44029, "rounded", 0.4403),
        (0.4402985, 0.44029, "unknown", 0.4402985),
        (0.5597015, 0.5597, "truncated", 0.5597),
        (0.59479554, 0.5948, "rounded", 0.5948),
    ],
)
def test_a_ratio_gets_the_digits_of_the_parameter(ratio: float, weight: float, digits: str, expected: float) -> None:
    assert _written(ratio, weight, digits) == expected


def test_a_positive_class_that_the_data_does_not_have_is_refused() -> None:
    recipe = RECIPE | {"dataset": "example_simulated", "positive": "banana"}
    experiment = validated(AuthorsNetworks, {"networks": ["bupa"], "recipes": {"bupa": recipe}}, "experiment")
    message = r"recipes\.bupa\.positive must be a class of example_simulated, \['0', '1'\], got 'banana'"
    with pytest.raises(ValueError, match=message):
        keys_of(experiment)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"networks must be among the names in recipes, \['own'\], got 'x'"):
        validated(AuthorsNetworks, {"networks": ["x"], "recipes": {"own": RECIPE}}, "experiment")
    with pytest.raises(ConfigurationError, match=r"smoothing must be a positive number, got 0\.0"):
        validated(Recipe, RECIPE | {"smoothing": 0.0}, "recipe")


def test_the_authors_networks_come_from_the_data_that_the_configuration_names(
    command: Command, given_networks: Path
) -> None:
    if not (given_networks / "files/uci/processed.cleveland.data").is_file():
        pytest.skip("TRIMBENCH_CACHE does not hold the Cleveland heart disease data")
    answer = command("experiment=trimming/authors_networks", "executor=serial", "offline=true")
    if "5 of 5 run" not in answer.err:
        pytest.skip("TRIMBENCH_CACHE does not hold the UCI data sets")
    table = table_of("trimming/authors_networks").set_index("network")
    assert table["rows"].to_dict() == {"bupa": 345, "pima": 768, "heart": 303, "hepatitis": 155, "voting": 435}
    # One free number in each distribution: bupa's are those of the recipe digit for digit, as are all of voting.
    assert table.loc["bupa", "of the better state, none filled"] <= 1e-5
    assert (table.loc["bupa", "parameters"], table.loc["bupa", "within 1e-5"]) == (26, 24)
    assert table.loc["voting", "equal"] == table.loc["voting", "parameters"] == 66
    assert table.loc["voting", "counts off"] < 1e-5
    assert table.loc["pima", "largest residual"] < 0.00115
    assert table.loc["heart", "of the better state, none filled"] < 0.0063
    assert table.loc["heart", "largest residual"] < 0.00235
    assert table.loc["hepatitis", "counts off, nothing missing"] < 1
    gaps = table_of("trimming/authors_networks_missing_cells").set_index("network")
    assert gaps.loc["voting", ["missing cells", "in state 1"]].tolist() == [392, 199]
    assert (gaps["probability of the total"] > 0.05).all()
    assert (gaps["probability of the spread over columns"] > 0.05).all()
    every = table_of("trimming/authors_networks_parameters")
    filled = every[every["network"] == "voting"]
    assert filled["count"].between(filled["observed"], filled["observed"] + filled["missing"]).all()
    assert np.abs(filled["implied_count"] - filled["count"]).max() < 1e-5
