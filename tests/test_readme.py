"""The README's code runs as it stands there, given rows of the reader's own."""

import re
from pathlib import Path

import numpy as np
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

import moew

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_every_python_block_runs(monkeypatch, capsys):
    rows = shifted_classes(120)
    small = moew.ExampleWeightSearch.__init__.__kwdefaults__ | {"n_batches": 1, "batch_size": 3}
    monkeypatch.setattr(moew.ExampleWeightSearch.__init__, "__kwdefaults__", small)
    model = LogisticRegression()
    names = {
        **rows._asdict(),
        "train_and_score": lambda weights: model.fit(rows.X, rows.y, weights).score(rows.X_val, rows.y_val),
    }
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    text = capsys.readouterr().out
    assert "precision at 95% recall on" in text
    assert "Told(candidate=Candidate(number=" in text
    assert np.isfinite(names["search"].honest_score_)


def test_the_first_screen_has_the_two_commands():
    first_screen = "\n".join(README.splitlines()[:40])
    assert "make demo" in first_screen
    assert "make test" in first_screen
