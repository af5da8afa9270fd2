"""The final choices of the benchmark are those of the search."""

from dataclasses import replace

import numpy as np
import pytest
from benchmark_modules import importable

from moew import MetricSearch, Rows

with importable():
    import final_choice
    from radius import PROBLEMS

SMALL = {
    "evaluate_on": "validation",
    "strategies": "example weights",
    "honest": None,
    "base_weights": "uniform",
    "radius": 3.0,
}


def search_for(name, final, *, slow=True):
    settings = PROBLEMS[name].settings()
    settings["metric"] = replace(settings["metric"], slow=slow)
    return MetricSearch.from_settings(
        **settings, **SMALL, final=final, n_candidates=18, batch_size=6, random_state=0
    )


def fitted_score(search, training, validation, test):
    search.fit(*training[:2], validation=Rows(validation[0], validation[1], columns=validation[2]))
    return search.metric_value(*test[:2], columns=test[2])


@pytest.mark.parametrize("name", ["digits", "toy", "money"])  # decisions of the model, scores, a rule
def test_final_choices_score_as_those_of_the_search(name):
    rows = PROBLEMS[name].draw(np.random.default_rng(0))
    scores = final_choice.final_scores(search_for(name, "best"), *rows, np.random.default_rng(0))
    assert tuple(scores) == final_choice.FINALS
    single = search_for(name, "best")
    assert scores["single best"] == fitted_score(single, *rows)
    assert single.result_.best_number > 0
    if name == "digits":
        return  # a search that averages would tune decisions, too
    search = search_for(name, "ensemble", slow=False)
    assert scores["ensemble"] == pytest.approx(fitted_score(search, *rows), rel=1e-9)
    assert max(strategy.n_members for strategy in search.result_.strategies) > 1
    assert scores["ensemble"] != scores["single best"]
