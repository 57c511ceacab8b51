"""One-rules (1R) and pruned decision trees (C4): Holte (1993), Table 3."""

from bisect import bisect
from collections import Counter, defaultdict
from itertools import pairwise

from sklearn.feature_extraction import DictVectorizer
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from trimbench import reproduction as rep


@rep.settings
class Table3:
    """Mean accuracy over random splits; each replication is a mean over as many splits as the paper has."""

    datasets: dict[str, str]
    without: dict[str, list[str]]
    seed: int
    replications: int
    splits: int

    def cells(self, inputs: rep.Inputs) -> list[rep.Cell]:
        """Return one job for each row of the table and replication."""
        return [
            rep.Cell.of({"row": row, "replication": n}, accuracies, self, dataset=inputs.dataset(name))
            for row, name in self.datasets.items()
            for n in range(self.replications)
        ]

    def outcome(self, rows) -> rep.Outcome:
        """Return the table, and each mean with the interval in which one more replication would lie."""
        lines, numbers = [], []
        for labels, done in rep.groups(rows, "row"):
            means = {name: rep.mean_of(done[name], "prediction") for name in ("1R", "C4")}
            lines.append(labels | {name: mean.value for name, mean in means.items()})
            numbers += rep.numbers_of(labels["row"], means, done)
        return rep.Outcome([rep.Table.of("Accuracy (%)", lines, {"row": "", "1R": ".1f", "C4": ".1f"})], [], numbers)


@rep.job(**{"1R": rep.NUMBER, "C4": rep.NUMBER})
def accuracies(dataset: rep.Input, row: str, replication: int, without: dict, splits: int, seed: int) -> dict:
    """Return the mean accuracy of both methods, in percent, over random splits with two thirds for training."""
    data, hits = rep.dataset_of(dataset), Counter()
    features = data.features.drop(columns=without.get(row, [])).astype(object)
    rows = features.where(features.notna(), "missing").to_dict("records")
    vectors = DictVectorizer(sparse=False).fit_transform(rows)
    for n in range(splits):
        start = rep.seed_for(row=row, replication=replication, split=n, seed=seed) % 2**32
        parts = train_test_split(rows, vectors, [*data.target], train_size=2 / 3, random_state=start)
        train, test, vectors_in, vectors_out, classes, truth = parts
        tree = DecisionTreeClassifier(criterion="entropy", ccp_alpha=0.01, random_state=start).fit(vectors_in, classes)
        hits["C4"] += tree.score(vectors_out, truth)
        hits["1R"] += sum(map(str.__eq__, one_rule(train, classes, test), truth)) / len(truth)
    return {name: 100 * total / splits for name, total in hits.items()}


def one_rule(train: list[dict], classes: list[str], test: list[dict]) -> list[str]:
    """Return the classes of test rows by the one feature that errs least in training; see section 2.1."""
    rules = []
    for name in train[0]:
        ends = interval_ends([row[name] for row in train], classes)
        counts = defaultdict(Counter)
        for row, label in zip(train, classes, strict=True):
            counts[place(row[name], ends)][label] += 1
        rules.append((sum(max(count.values()) for count in counts.values()), name, ends, counts))
    _, name, ends, counts = max(rules, key=lambda rule: rule[0])
    return [counts.get(place(row[name], ends), Counter(classes)).most_common(1)[0][0] for row in test]


def interval_ends(values: list, classes: list[str]) -> list[float]:
    """Return where intervals of numbers end: with 6 rows of a class or more, and a row of another class after it."""
    ends, counts = [], Counter()
    rows = sorted((value, label) for value, label in zip(values, classes, strict=True) if isinstance(value, float))
    for (value, label), (following, other) in pairwise(rows):
        counts[label] += 1
        if max(counts.values()) >= 6 and following > value and other != counts.most_common(1)[0][0]:
            ends, counts = [*ends, (value + following) / 2], Counter()
    return ends


def place(value: float | str, ends: list[float]) -> int | str:
    """Return the number of an interval, or a text as it is, such as that of a missing value."""
    return bisect(ends, value) if isinstance(value, float) else value
