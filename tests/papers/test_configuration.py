"""The configuration folder and what is declared in it."""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from trimbench.reproduction import configuration
from trimbench.reproduction.commands.arguments import Composer, setting
from trimbench.reproduction.commands.common_settings import SHARED_KEYS
from trimbench.reproduction.configuration import Catalogue, files_below, plain
from trimbench.reproduction.project import project
from trimbench.reproduction.settings import ConfigurationError
from trimbench.reproduction.vocabulary.reported import Literature
from trimbench.reproduction.vocabulary.tables import shown_name

from .command_line import PROJECT


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    for path, text in {
        "own/dataset/clinic.yaml": "kind: csv\npath: clinic.csv\ntarget: ill\n",
        "own/dataset/deep/one.yaml": "kind: csv\npath: ../x.csv\ntarget: ill\n",
        "own/dataset/digits.yaml": "kind: bundled\ndataset: breast_cancer\n",
        "own/dataset/list.yaml": "[1, 2]\n",
        "own/dataset/broken.yaml": "kind: [csv\n",
        "own/dataset/loop.yaml": "kind: ${kind}\n",
        "own/dataset/latin.yaml": b"kind: caf\xe9\n",
        "own/dataset/empty.yaml": "",
        "base/dataset/digits.yaml": "kind: bundled\ndataset: digits\n",
        "base/dataset/notes.txt": "no declaration",
        "base/network/tiny.yaml": "format: bif\n",
    }.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Catalogue((tmp_path / "own",), (tmp_path / "base",))


def test_names_are_those_of_all_folders(catalogue: Catalogue) -> None:
    assert catalogue.names("dataset") == [*("broken", "clinic", "deep/one", "digits", "empty", "latin", "list", "loop")]
    assert catalogue.names("network") == ["tiny"]
    assert catalogue.names("nothing") == []


def test_the_first_folder_wins_and_an_empty_file_has_no_keys(catalogue: Catalogue) -> None:
    assert catalogue.mapping("dataset", "digits")["dataset"] == "breast_cancer"
    assert catalogue.mapping("dataset", "empty") == {}
    assert Catalogue(base=catalogue.folders[1:]).mapping("dataset", "digits")["dataset"] == "digits"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clinik", r"^dataset must be one of broken, clinic, .*, got 'clinik'; did you mean 'clinic'\?$"),
        ("list", r"list\.yaml must hold keys and values, got list"),
        ("broken", r"broken\.yaml cannot be read: "),
        ("loop", r"loop\.yaml cannot be read: "),
        ("latin", r"latin\.yaml cannot be read: "),
    ],
)
def test_a_declaration_that_cannot_be_read(catalogue: Catalogue, name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        catalogue.mapping("dataset", name)


def test_paths_start_at_their_file(catalogue: Catalogue, tmp_path: Path) -> None:
    assert catalogue.declared("dataset", "clinic")["path"] == str(tmp_path / "own/dataset/clinic.csv")
    assert catalogue.declared("dataset", "deep/one")["path"] == str(tmp_path / "own/dataset/x.csv")


def chain(link: str, n: int, first: str = "v0: &v0 [1, 2]") -> str:
    """Return values each of which stands for several of the one before."""
    return first + "\n" + "".join(link.format(n, n - 1) + "\n" for n in range(1, n))


BOMBS = {
    "aliases": chain("v{0}: &v{0} [*v{1}, *v{1}, *v{1}]", 15),
    "merged keys": chain("v{0}: &v{0} {{a: *v{1}, b: *v{1}, <<: {{c: *v{1}}}}}", 15),
    "keys merged again": "v0: &v0 {k: 1}\n"
    + "".join(f"v{n}: &v{n} {{<<: [{', '.join([f'*v{n - 1}'] * 10)}]}}\n" for n in range(1, 13)),
    "texts": chain("v{0}: ${{v{1}}}${{v{1}}}", 25, "v0: text"),
    "lists": chain("v{0}: ['${{v{1}}}', '${{v{1}}}']", 25),
    "relative": "a:\n" + chain("  v{0}: [x, '${{..v{1}}}', '${{..v{1}}}']", 25, "  v0: text"),
    "through others": chain("v{0}: {{t: '${{w{1}.t}}${{w{1}.t}}'}}\nw{0}: ${{v{0}}}", 25, "w0: {t: text}"),
    "by a resolver": chain("v{0}: '${{oc.select:v{1}}}${{oc.select:\"v{1}\", 1}}'", 25, "v0: text"),
    "commas": chain("'v,{0}': '${{v,{1}}}${{v,{1}}}'", 25, "'v,0': text"),
    "in quotes": chain("'a}} {0}': \"${{oc.select:'a}} {1}'}}${{oc.select:a\\\\}}\\\\ {1}}}\"", 25, "'a} 0': text"),
    "in brackets": chain("v.{0}: ['${{oc.select:[v.{1}]}}', '${{oc.select:[v.{1}]}}']", 25, "v.0: text"),
    "places": chain("- ${{.+{1}}}${{.-9}}${{.+{1}}}", 25, "- text"),
    "long": "a: [" + "1, " * 50_000 + "1]\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_stands_for_too_much_is_refused_at_once(catalogue: Catalogue, tmp_path: Path, name: str) -> None:
    file = tmp_path / "own/dataset/bomb.yaml"
    file.write_text(BOMBS[name])
    start = time.process_time()
    with pytest.raises(ConfigurationError, match=rf"^{file} must have at most 131,072 characters.*; ") as raised:
        catalogue.mapping("dataset", "bomb")
    assert time.process_time() - start < 2
    assert len(str(raised.value)) <= 500
    if name not in ("aliases", "merged keys", "keys merged again", "long"):
        with pytest.raises(ConfigurationError, match=r"^the configuration must have at most 131,072 "):
            plain(OmegaConf.create(file.read_text()))


INTERPOLATIONS = "${a} ${b.c}x${a} ${..b} ${.c} ${d.0} ${e,} ${oc.select:'b.f\\g'}x ${oc.select:'[h.]'} ${d.+1} text"


@given(
    st.recursive(
        st.sampled_from([*INTERPOLATIONS.split(), 1, None]),
        lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inside, max_size=3),
    )
    .map(lambda values: {"top": values, "a": "text", "b": {"c": "${a}${a}", "f\\g": "${e,}"}})
    .map(lambda values: {**values, "d": ["${b}", "${b.c}"], "e,": "${h}x", "h": "text", "h.": "${a}"})
)
def test_the_length_that_is_counted_is_at_least_that_of_the_resolved_values(values: dict[str, Any]) -> None:
    try:
        resolved = OmegaConf.to_container(OmegaConf.create(values), resolve=True)
    except (OmegaConfBaseException, RecursionError):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration, "_LONGEST", sum(map(len, re.findall(r"\w+", str(resolved)))) - 1)
        with pytest.raises(ConfigurationError, match="must have at most"):
            plain(OmegaConf.create(values))


def test_what_would_hide_the_length_of_values_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"^b\.0 must not have one interpolation inside of another, got "):
        plain(OmegaConf.create({"a": "b", "b": ["${${a}}"]}))
    with pytest.raises(ConfigurationError, match=r"^oc\.create must not be given aliases"):
        plain(OmegaConf.create({"a": "x", "b": "${oc.create:'[&a [1, 1], *a, *a]'}"}))


def test_printed_numbers_are_compared_with_the_settings_of_the_papers() -> None:
    pinned = yaml.safe_load(Path(__file__).with_name("paper_settings.yaml").read_text(encoding="utf-8"))
    assert set(pinned) == set(Literature.of(PROJECT).experiments)
    composer = Composer(PROJECT)
    for name, settings in pinned.items():
        found = composer.compose([setting("profile", "paper"), setting("experiment", name)])
        own = {key: value for key, value in found.items() if key not in (*SHARED_KEYS, "runner", "notes", "smoke_test")}
        assert own == settings, name


def test_files_that_are_the_projects_own_replace_nothing(tmp_path: Path) -> None:
    text = (project().configuration / "dataset/digits.yaml").read_bytes()
    (tmp_path / "dataset").mkdir()
    (tmp_path / "dataset/digits.yaml").write_bytes(text)
    catalogue = Catalogue((tmp_path,))
    assert catalogue.replaced() == {}
    (tmp_path / "dataset/digits.yaml").write_bytes(text + b"# another\n")
    assert catalogue.replaced() == {"dataset/digits": tmp_path / "dataset/digits.yaml"}


def test_linked_folders_are_searched_like_others(tmp_path: Path) -> None:
    shared = tmp_path / "shared" / "deep"
    shared.mkdir(parents=True)
    (shared / "one.yaml").write_text("a: 1\n", encoding="utf-8")
    own = tmp_path / "own"
    (own / "experiment").mkdir(parents=True)
    (own / "experiment/lab").symlink_to(tmp_path / "shared")
    (tmp_path / "shared/again").symlink_to(own / "experiment")  # in a circle
    (own / "dataset").symlink_to(shared)
    catalogue = Catalogue((own,))
    assert "lab/deep/one" in catalogue.names("experiment")
    assert catalogue.mapping("experiment", "lab/deep/one") == {"a": 1}
    assert "one" in catalogue.names("dataset")
    (shared / "digits.yaml").write_text("kind: csv\n", encoding="utf-8")
    assert catalogue.replaced() == {"dataset/digits": own / "dataset/digits.yaml"}


def test_links_among_folders_end(tmp_path: Path) -> None:
    folders = [tmp_path / str(i) for i in range(12)]
    for folder in folders:
        folder.mkdir()
        (folder / "x.yaml").touch()
    for folder, following in itertools.pairwise(folders):
        for name in "abc":  # 3 ** 11 paths
            (folder / name).symlink_to(following)
    assert len(files_below(folders[0])) == 1 + 3 + 9 + 27


def test_everything_that_is_declared_has_a_name_for_titles() -> None:
    names = [name for group in ("dataset", "network", "protocol") for name in PROJECT.names(group)]
    assert [name for name in names if shown_name(name) == name] == []
    assert (shown_name("my_data"), shown_name("my_data", "My data")) == ("my_data", "My data")
    assert shown_name("fashion", "Fashion") == "Fashion-MNIST"
