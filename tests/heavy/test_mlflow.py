"""MLflow: searches in a real file store, read back through MLflow's own client."""

import math
from pathlib import Path

import numpy as np
import pytest
from pages import DOCS, blocks
from problems import shifted_classes
from sklearn.linear_model import LogisticRegression

pytestmark = pytest.mark.heavy
pytest.importorskip("mlflow", reason="MLflow is not installed")

from mlflow import MlflowClient  # noqa: E402
from mlflow.artifacts import download_artifacts  # noqa: E402

from moew import MetricSearch  # noqa: E402
from moew.exceptions import MoewWarning, SearchFailedError  # noqa: E402
from moew.tracking import MlflowCallback  # noqa: E402

ROWS = shifted_classes(120, 3)


class FailsSometimes(LogisticRegression):
    """Fails if the first row's weight is among the smaller ones."""

    def __init__(self, least=0.8, C=1.0):
        super().__init__(C=C)
        self.least = least

    def fit(self, X, y, sample_weight=None):
        if sample_weight[0] < self.least:
            raise RuntimeError("the disk is full")
        return super().fit(X, y, sample_weight)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The address of a new file store, which newer versions of MLflow want to be allowed."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return (tmp_path / "mlruns").as_uri()


def make(callback, estimator=None, **settings):
    small = {"embedding": "label", "n_candidates": 10, "batch_size": 5, "random_state": 0, **settings}
    return MetricSearch.from_settings(
        estimator or LogisticRegression(), metric="worst_class_error", callbacks=[callback], **small
    )


def fit(search):
    return search.fit(ROWS.X, ROWS.y, validation=(ROWS.X_val, ROWS.y_val))


def history(client, run_id, name):
    return {point.step: point.value for point in client.get_metric_history(run_id, name)}


def text_of(run, name):
    path = download_artifacts(artifact_uri=f"{run.info.artifact_uri}/{name}")
    return Path(path).read_text(encoding="utf-8")


def test_the_whole_search_is_logged(store, tmp_path):
    callback = MlflowCallback(store, "digits", run_name="first")
    search = fit(make(callback, FailsSometimes(0.6)))  # some candidates fail, some do not
    client, result = MlflowClient(store), search.result_
    experiment = client.get_experiment_by_name("digits")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.run_id == callback.run_id and run.info.run_name == "first"
    assert run.info.status == "FINISHED" and run.info.end_time is not None
    params, metrics, tags = run.data.params, run.data.metrics, run.data.tags
    assert params["n_candidates"] == "10" and params["metric"] == "worst class error"
    assert set(params) == set(vars(search.settings)) - {"callbacks", "verbose"}
    values = {name: history(client, callback.run_id, name) for name in metrics if name.startswith("value/")}
    scored = [trial for trial in search.study_.trials() if math.isfinite(trial.value)]
    assert values["value/example_weights"] == {trial.number: trial.value for trial in scored}
    n_scored = sum(map(len, values.values()))
    assert result.n_failed >= 1 and len(values["value/class_weights"]) >= 1
    assert n_scored + metrics["failed"] == result.n_models
    best = history(client, callback.run_id, "best_so_far")
    along = [best[step] for step in sorted(best)]
    assert along == sorted(along, reverse=True) and len(along) == n_scored  # an error: lower is better
    assert along[-1] == min(min(of_strategy.values()) for of_strategy in values.values())
    low, high = result.gain_interval
    told = {"best_score": search.best_score_, "honest_score": search.honest_score_, "gain": result.gain}
    told |= {"unweighted_score": search.unweighted_score_, "gain_low": low, "gain_high": high}
    for name, value in told.items():
        assert metrics[name] == value, name
    assert (tags["moew.selected"], tags["moew.reason"]) == (search.selected_, result.reason)
    assert text_of(run, "result.txt") == f"{result}\n"
    page = text_of(run, "report.html")
    assert page.startswith("<!") and search.selected_ in page
    assert not list(tmp_path.rglob("*.pkl"))


def test_each_fit_is_a_run_and_a_stored_study_is_logged_whole(store, tmp_path):
    callback = MlflowCallback(store, report=False)
    search = make(callback, storage=tmp_path / "study.db", strategies="example weights", final="best")
    fit(search)
    first = callback.run_id
    fit(search)  # all candidates are there
    client = MlflowClient(store)
    assert first != callback.run_id
    assert len(client.search_runs([client.get_experiment_by_name("moew").experiment_id])) == 2
    values = history(client, callback.run_id, "value/example_weights")
    assert values == history(client, first, "value/example_weights") and len(values) == 11
    assert [file.path for file in client.list_artifacts(callback.run_id)] == ["result.txt"]


def test_a_search_that_fails_is_a_failed_run(store):
    callback = MlflowCallback(store)
    with pytest.raises(SearchFailedError):
        fit(make(callback, FailsSometimes(least=math.inf)))
    run = MlflowClient(store).get_run(callback.run_id)
    assert run.info.status == "FAILED" and run.data.metrics["failed"] >= 1
    assert "honest_score" not in run.data.metrics


@pytest.mark.parametrize("for_ever", [True, False])
def test_a_store_that_is_lost_does_not_lose_the_search(for_ever, store, monkeypatch):
    callback = MlflowCallback(store, report=False)
    batches, log = [], MlflowClient.log_batch

    def fail_later(*told, **more):
        batches.append(told)
        if len(batches) > 3 and (for_ever or len(batches) == 4):
            raise ConnectionError("the store is gone")
        log(*told, **more)

    monkeypatch.setattr(MlflowClient, "log_batch", fail_later)
    with pytest.warns(MoewWarning, match="MlflowCallback failed in .*: ConnectionError: the store") as seen:
        search = fit(make(callback, FailsSometimes()))
    failed_in = [str(one.message).split(":")[0].split()[-1] for one in seen]
    assert failed_in == (["on_trial", "on_end"] if for_ever else ["on_trial"])
    assert np.isfinite(search.honest_score_)
    client = MlflowClient(store)
    run = client.get_run(callback.run_id)
    assert run.info.status == "FINISHED"
    if not for_ever:  # the rest was logged at the end
        assert run.data.metrics["honest_score"] == search.honest_score_
        values = history(client, callback.run_id, "value/example_weights")
        scored = [trial for trial in search.study_.trials() if math.isfinite(trial.value)]
        assert values == {trial.number: trial.value for trial in scored}
        assert run.data.metrics["failed"] == search.result_.n_failed >= 1


def test_a_store_that_cannot_be_written_ends_the_fit_before_training(store, tmp_path, monkeypatch):
    monkeypatch.setattr("moew.search._estimator.run_search", None)
    (tmp_path / "mlruns").write_text("a file in the place of the folder")
    with pytest.raises(Exception, match="mlruns"):
        fit(make(MlflowCallback(store)))


def test_searched_parameters_of_the_winner_are_logged(store):
    from optuna.distributions import FloatDistribution

    callback = MlflowCallback(store, report=False)
    space = {"C": FloatDistribution(1e-2, 1e2, log=True)}
    search = fit(make(callback, search_space=space, strategies="example weights", final="best"))
    logged = MlflowClient(store).get_run(callback.run_id).data.params
    assert float(logged["best_params.C"]) == search.best_params_["C"]


def test_the_code_on_the_first_page(store, own_folder):
    names = {"search": make(None).set_params(callbacks=None)}
    (code,) = [block.code for block in blocks(DOCS / "start.md") if "Mlflow" in block.code]
    exec(code, names)
    fit(names["tracked"])
    client = MlflowClient("file:./mlruns")
    (run,) = client.search_runs([client.get_experiment_by_name("digits").experiment_id])
    assert run.info.status == "FINISHED"
