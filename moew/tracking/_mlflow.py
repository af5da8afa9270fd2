"""A search as a run of MLflow, written while it is trained."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from moew import __version__
from moew.data import Rows
from moew.exceptions import InvalidInputError
from moew.metrics import Metric
from moew.report import collect, render, setting_text
from moew.search import WEIGHTS, FittedSearch, SearchCallback, SearchResult, SearchSettings, Trial

if TYPE_CHECKING:
    from mlflow import MlflowClient

_NOT_LOGGED = ("callbacks", "verbose")


class MlflowCallback(SearchCallback):
    """Logs each fit of a search as a run of MLflow: parameters, candidates, winner, result and report.

    - Parameters: those of the search, as text, without passwords and folders; `best_params.NAME` are the
      searched hyper-parameters of the winner.
    - Metrics of candidates: `value/example_weights` and so on for each strategy, by the candidate's number;
      `best_so_far` and `failed`, by the number of candidates so far.
    - Metrics of the end: `best_score`, `honest_score`, `unweighted_score`, `unweighted_honest_score`, `gain`
      and its 95 % interval, `gain_low` and `gain_high`; the tags `moew.selected` and `moew.reason`.
    - Artifacts: `result.txt`, the printed result, and `report.html`, the report page.

    The models are not logged: keep them with `search.save`. Of a stored study, candidates of example weights
    that this fit did not train are logged at its end. With `join=True` each process has a run of its own.

    Parameters
    ----------
    tracking_uri : str or None, default None
        Where MLflow keeps its runs: a server's address, or "file:./mlruns" for a folder; None is MLflow's own
        setting.
    experiment : str, default "moew"
        The name of the experiment; made if there is none.
    run_name : str or None, default None
        None lets MLflow find one.
    report : bool, default True
        Whether the report page is made and logged. It shows a few of the training rows.

    Attributes
    ----------
    run_id : str or None, the id of the latest run, to log more to it
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        experiment: str = "moew",
        *,
        run_name: str | None = None,
        report: bool = True,
    ) -> None:
        self.tracking_uri = tracking_uri
        self.experiment = experiment
        self.run_name = run_name
        self.report = report
        self.run_id: str | None = None

    def __repr__(self) -> str:
        return f"MlflowCallback(experiment={self.experiment!r})"

    def on_begin(self, settings: SearchSettings, metric: Metric) -> None:
        """Begin a run, and log the parameters."""
        client = self._client()
        found = client.get_experiment_by_name(self.experiment)
        where = client.create_experiment(self.experiment) if found is None else found.experiment_id
        tags = {"moew.version": __version__, "moew.metric": metric.name}
        self.run_id = client.create_run(where, tags=tags, run_name=self.run_name).info.run_id
        self._sign = 1.0 if metric.greater_is_better else -1.0
        self._seen: set[tuple[str, int]] = set()
        self._best, self._n_failed = -math.inf, 0
        shown = {**vars(settings), "metric": metric.name}
        self._log(params={name: setting_text(shown[name]) for name in shown if name not in _NOT_LOGGED})

    def on_trial(self, strategy: str, trial: Trial) -> None:
        """Log the value of a candidate and the best so far, or one more failure."""
        n_seen = len(self._seen) + 1
        best, n_failed = self._best, self._n_failed
        if math.isfinite(trial.value):
            best = max(best, self._sign * trial.value)
            value = (f"value/{strategy.replace(' ', '_')}", trial.value, trial.number)
            self._log([value, ("best_so_far", self._sign * best, n_seen)])
        else:
            n_failed += 1
            self._log([("failed", n_failed, n_seen)])
        # Only now: what could not be logged comes again at the end.
        self._seen.add((strategy, trial.number))
        self._best, self._n_failed = best, n_failed

    def on_end(self, fitted: FittedSearch | None, training: Rows, validation: Rows) -> None:
        """Log the selected model, the result and the report, and end the run."""
        try:
            if fitted is not None:
                for trial in fitted.result.trials:
                    if (WEIGHTS, trial.number) not in self._seen and not trial.pending:
                        self.on_trial(WEIGHTS, trial)
                self._log_result(fitted.result)
                if self.report:
                    page = render(collect(fitted, training, validation))
                    self._client().log_text(self.run_id, page, "report.html")
        finally:
            self._client().set_terminated(self.run_id, "FAILED" if fitted is None else "FINISHED")

    def _log_result(self, result: SearchResult) -> None:
        low, high = result.gain_interval
        scores = {
            "best_score": result.honest.apparent,
            "honest_score": result.honest.value,
            "unweighted_score": result.unweighted.apparent,
            "unweighted_honest_score": result.unweighted.value,
            "gain": result.gain,
            "gain_low": low,
            "gain_high": high,
            "failed": self._n_failed,
        }
        self._log(
            [(name, value, len(self._seen)) for name, value in scores.items() if math.isfinite(value)],
            params={f"best_params.{name}": str(value) for name, value in result.best_parameters.items()},
            tags={"moew.selected": result.selected, "moew.reason": result.reason},
        )
        self._client().log_text(self.run_id, f"{result}\n", "result.txt")

    def _log(
        self,
        metrics: Sequence[tuple[str, float, int]] = (),
        *,
        params: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Log metrics (name, value, step), parameters and tags in one request."""
        from mlflow.entities import Metric, Param, RunTag

        now = int(time.time() * 1000)
        self._client().log_batch(
            self.run_id,
            [Metric(name, float(value), now, step) for name, value, step in metrics],
            [Param(name, value) for name, value in (params or {}).items()],
            [RunTag(name, value) for name, value in (tags or {}).items()],
        )

    def _client(self) -> MlflowClient:
        """A client, made anew each time: kept, it could stand in the way of copies of the search."""
        try:
            from mlflow import MlflowClient
        except ImportError as error:
            raise InvalidInputError(
                "MlflowCallback needs MLflow, which is not installed: pip install 'moew[mlflow]'.",
                argument="callbacks",
            ) from error
        return MlflowClient(self.tracking_uri)
