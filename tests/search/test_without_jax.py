"""JAX is an extra: fits, reports and the command line do without it; what needs networks says so."""

import subprocess
import sys

from tables import write_classes

_BEGIN = """
import sys
sys.modules["jax"] = None  # as if it were not installed
"""
_SEARCH = """
import numpy as np
from sklearn.linear_model import LogisticRegression
import moew
from moew.report import write_report
X = np.random.default_rng(0).standard_normal((120, 2))
y = X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(120) > 0.7
search = moew.MetricSearch.from_settings(LogisticRegression(), n_candidates=6, batch_size=3, random_state=0)
write_report(search.fit(X, y), X, y, "report.html")
search.save("search.moew")
print((moew.load("search.moew").predict(X) == search.predict(X)).all())
paper = moew.MetricSearch.as_in_the_paper(LogisticRegression())
needs_networks = [
    lambda: moew.NetworkClassifier,
    lambda: __import__("moew.models").models.NetworkRegressor,
    lambda: search.set_params(strategies=moew.ExampleWeights("autoencoder")).fit(X, y),
    lambda: search.set_params(strategies=moew.ExampleWeights("discriminative")).fit(X, y),
    lambda: paper.fit(X, y, validation=(X, y)),
    lambda: moew.load_state({"kind": "moew.models:NetworkClassifier", "version": 1}),
]
for ask in needs_networks:
    try:
        ask()
    except ImportError as error:
        print(f"{type(error).__name__}: {error}")
"""
_COMMAND = """
from moew.cli import main
main(sys.argv[1:])
"""


def test_the_default_fit_needs_no_jax_and_networks_say_which_extra(own_folder):
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + _SEARCH], capture_output=True, text=True, check=True
    )
    first, *messages = done.stdout.splitlines()
    assert first == "True"
    assert (own_folder / "report.html").stat().st_size > 0
    assert len(messages) == 6
    for message in messages:
        assert message.startswith("MissingLibraryError: ")
        assert message.endswith("need JAX, which is not installed: pip install 'moew[networks]'.")


def test_the_command_line_needs_no_jax_and_networks_say_which_extra(own_folder):
    write_classes(own_folder)

    def fit(*more):
        command = ["fit", "train.csv", "--label", "y", "--id", "id", "--metric", "accuracy", "--out", "run"]
        command += ["--candidates", "2", "--set", "batch_size=2", "--model", "logistic", *more]
        return subprocess.run(
            [sys.executable, "-c", _BEGIN + _COMMAND, *command], capture_output=True, text=True
        )

    for more in (
        ("--set", "embedding=autoencoder"),
        ("--set", "embedding=discriminative"),
        ("--model", "network"),
    ):
        refused = fit(*more)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1
        assert "pip install 'moew[networks]'" in refused.stderr
    done = fit()
    assert done.returncode == 0, done.stderr
