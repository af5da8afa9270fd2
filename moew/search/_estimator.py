"""MetricSearch: from a model to the metric it is judged by, as one scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from moew._util.processes import sigterm_like_ctrl_c
from moew._util.progress import progress, stage
from moew._util.seeds import generator
from moew.data import (
    CHUNK_ROWS,
    LabelledRows,
    Rows,
    as_rows,
    columns_from,
    iter_chunks,
    labelled_rows,
    two_dimensional,
    without_columns,
)
from moew.embedding import DirectionsEmbedding, LabelEmbedding
from moew.exceptions import Argument, InvalidInputError, MoewWarning
from moew.search._callbacks import SearchCallback, call_at_begin, call_at_end, trial_caller
from moew.search._conclude import conclude
from moew.search._honest_score import look_at_unweighted
from moew.search._loop import Budget, Outcome, Search, search_side_by_side
from moew.search._prepare import Prepared, prepare
from moew.search._result import FittedSearch, cv_results
from moew.search._saved import save_search
from moew.search._settings import SearchSettings, StudyStorage, TrainingOptions, paper_settings
from moew.search._strategies import WEIGHTS, ExampleWeights, list_searches, resolve_strategies
from moew.types import Features, FloatArray, IntArray, Labels
from moew.weighting import LabelShift, UniformBaseWeights, downsample_rows

if TYPE_CHECKING:
    from moew.search._optuna import SearchSpace
    from moew.storage import Storage

_PARTS = ("strategies", "storage", "training")  # parameters that hold settings of their own


def run_search(prepared: Prepared, *, concludes: bool = False) -> FittedSearch:
    """Run a prepared search: Algorithm 1 beside the simple strategies, the choice, honest scores.

    If `concludes`, a KeyboardInterrupt while candidates are trained ends with the result of what there is.
    """
    prepared = look_at_unweighted(prepared)
    searches, outcomes = train_candidates(prepared, concludes=concludes)
    try:
        with stage("evaluating the strategies and training the final model", prepared.settings.verbose):
            return conclude(prepared, searches, outcomes)
    finally:
        for search in searches.values():
            search.study.close()


def train_candidates(
    prepared: Prepared, *, concludes: bool = False
) -> tuple[dict[str, Search], dict[str, Outcome]]:
    """Train all candidates of a prepared search, with others that join it; returns the searches of all
    strategies, and their outcomes. If `concludes`, a KeyboardInterrupt ends it with what there is, and a
    warning."""
    settings = prepared.settings
    budget = Budget(
        settings.n_candidates, settings.batch_size, prepared.deadline, settings.most_failures, concludes
    )
    searches = list_searches(prepared)
    on_told = trial_caller(settings.callbacks, list(searches)) if settings.callbacks else None
    crew = None if settings.storage is None else searches[WEIGHTS].study.crew(joins=settings.join)
    show = partial(progress, enabled=settings.verbose)
    try:
        with nullcontext() if crew is None else crew.at_work():
            outcomes = search_side_by_side(
                list(searches.values()), budget, on_told=on_told, crew=crew, show=show
            )
        cut_off = outcomes[0].cut_off
        if cut_off is not None and cut_off.reason == "interrupt":
            warning = MoewWarning(
                f"interrupted: {cut_off.n_trained} of {cut_off.n_candidates} candidates are trained, and the "
                "search ends with the best of them. Ctrl-C once more ends it at once, without a result. "
                "With a ",
                Argument("storage"),
                " an interrupted search can go on.",
            )
            warnings.warn(warning, stacklevel=4)  # where `fit` was called
    except BaseException:
        for search in searches.values():
            search.study.close()
        raise
    return searches, dict(zip(searches, outcomes, strict=True))


class MetricSearch(MetaEstimatorMixin, BaseEstimator):
    """Find the best strategy for `estimator` by the metric: example weights, or a simpler one where it is as
    good.

    Candidate weightings w(x, y; α) = c·π(y)·σ(z(x, y)ᵀα) (eq. 3) are proposed some at a time. Their models
    are scored on rows that they were not trained on: the validation rows, which should come from the
    distribution that matters, and training rows out of fold as far as the validation rows do not contradict
    them. They are compared with simple strategies: the unweighted model, a constant prediction, tuned
    decisions, class weights, importance weights.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor whose `fit` takes sample weights, or one with `fit_many`.
    metric : callable, Metric, scikit-learn scorer or name, or a list or dict of them, default None
        What the model is judged by. A bare function gets (y_true, decisions) and is maximised; see
        `make_metric`. A name is moew's, such as "precision_at_recall=0.95", or a scorer's. None is accuracy
        for classifiers and R² for regressors. Of several the first is optimised, and all are computed for
        every model that was tried; see `result_.pareto`.
    constraints : str, list of str or None, default None
        Bounds of metrics in `metric`, such as "fpr_gap <= 0.05". The best that keeps them, with the one-sided
        95 % margin from bootstrap resamples of the evaluation rows, is selected; where nothing does, what
        comes closest, with a warning.
    strategies : "auto" or list, default "auto"
        What is tried: names such as "class weights", or `ExampleWeights(…)` with settings of its own; "auto"
        is all of them, also in a list, as in ["auto", ExampleWeights(radius=2.0)]. The one with the best
        honest score is selected, or the simplest that is behind it by no more than a quarter of a standard
        error; a constant prediction only if it is ahead of the unweighted model beyond chance. With
        [ExampleWeights()] alone example weights are selected, and no class weights are trained.
    decision : decision rule, its name, float or None, default None
        How a score becomes a decision, refitted for each candidate: a name such as "tuned", "select=0.05" or
        "accurate@train", or a threshold for the probability of the positive class. None is the model's
        `predict`, or decisions tuned for the metric where that is better.
    evaluate_on : "auto", "validation", float, int, splitter or iterable, default "auto"
        Which rows candidates are evaluated on. "auto": the validation rows and training rows out of fold (two
        folds, five for the finalists), fewer of those the more their distribution differs, none beside 5,000
        validation rows. "validation": the validation rows alone, as in the paper. A whole number: so many
        folds. Without validation rows also the share of rows held out (no refit), or a splitter, whose
        pooled out-of-fold predictions are scored. After folds, what is selected is trained again on all rows.
    honest : "halves", "holdout", float or None, default "halves"
        How `honest_score_` is computed: from random halves of the evaluation rows; on rows set aside (0.3 of
        the validation rows, or the given share) that the search does not use; or not at all.
    n_candidates : int, default 100
        How many candidates are trained, besides α = 0; a fifth of them are class weights (in regression,
        powers of the target).
    timeout : float or None, default None
        Seconds from the begin of this `fit` after which no candidate is begun; those that were begun are
        finished, and the best so far wins. The models at α = 0 and one candidate are always trained, and a
        model with `fit_many` ends after a batch. Finalists with more folds and the final models take their
        own time. `result_.cut_off` and a note say how many candidates were trained. With a storage the same
        call, with this or another timeout, goes on.
    search_space : mapping of names to Optuna distributions, or None, default None
        Hyper-parameters that are searched together with α, such as {"C": FloatDistribution(1e-4, 1e2,
        log=True)}; "step__C" for a Pipeline. Candidate 0 has the estimator's own. A fifth of the candidates
        are unweighted models whose parameters TPE proposes: the strategy "hyper-parameters". Needs Optuna.
    calibrate : "sigmoid", "isotonic" or None, default None
        Whether `predict_proba` of what is selected is calibrated on the evaluation rows, out of fold: with a
        sigmoid, or with an isotonic curve, which needs about a thousand rows. `predict` stays as it was
        evaluated. Costs one more training in each fold.
    storage : None, path, URL or StudyStorage, default None
        Where the study is stored, such as "run.db" or "postgresql://user@host/name"; with an integer
        `random_state` an interrupted fit continues where it stopped.
    training : TrainingOptions or None, default None
        How models are trained where it is not the usual way: rows to stop early by, a limit on the seconds of
        one training, …
    n_jobs : int, "auto" or None, default None
        How many models are trained in parallel, through joblib; -1 is one for each core. "auto" trains in
        this process for ten seconds, as starting others takes a few itself, and then on all cores.
    callbacks : list of SearchCallback or None, default None
        What is told of the search while `fit` runs, such as `moew.tracking.MlflowCallback()`. They change
        nothing of it: an error of one during the search is a warning. `compare` calls none.
    verbose : bool or None, default None
        Whether progress is shown; None shows a bar on a terminal and in a notebook.
    random_state : int, RandomState or None, default None

    Attributes
    ----------
    selected_ : str, the selected strategy, which all that follows is about, such as "tuned decisions"
    best_score_, honest_score_ : float, its score on the evaluation rows, and the same corrected for the
        choice, in the metric's own units and direction
    best_estimator_ : its fitted model; a `ModelEnsemble` of several
    decision_ : its fitted decision rule, or None for the model's own decisions
    sample_weight_ : array (n,), the weights that its model was trained with, averaged over an ensemble
    weight_function_ : the same weights for any rows
    best_params_ : dict, the searched hyper-parameters of its model, in an ensemble those of the member with
        the most votes; empty without a search space
    training_rows_ : array (n,), the numbers of those rows in X: all, or those that were not held out
    unweighted_score_, unweighted_estimator_, unweighted_decision_ : of the model that is trained without
        learned weights; None if it could not be trained
    best_alpha_ : array (d,), of the best single candidate of the search
    alpha_zero_score_ : float, of the α = 0 model; with π = 1 it is the unweighted model
    cv_results_ : dict of arrays (n,), the candidates of the search for example weights in scikit-learn's
        layout. `mean_test_score` is the metric on the evaluation rows, pooled over folds, with the sign that
        makes greater better, and NaN for failures, which `error` explains and `rank_test_score` puts last.
        `params` and `param_NAME` are the searched hyper-parameters, `alpha_0`, `alpha_1`, … the alpha
    result_ : SearchResult, everything above, every strategy and every trial; print it, or
        `result_.to_frame()`
    study_ : WeightStudy
    fitted_ : FittedSearch, all of this as one record, which reports and plots use

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from moew import ExampleWeights, MetricSearch
    >>> from moew.metrics import worst_class_error
    >>> X, y = make_classification(600, weights=[0.9], flip_y=0.05, random_state=0)
    >>> search = MetricSearch(
    ...     LogisticRegression(),
    ...     metric=worst_class_error(),
    ...     strategies=["auto", ExampleWeights(embedding="label", batch_size=5)],
    ...     n_candidates=10,
    ...     random_state=0,
    ... )
    >>> search.fit(X[:200], y[:200], validation=(X[200:400], y[200:400])).predict(X[400:]).shape
    (200,)
    >>> search.selected_, search.example_weights(X, y).shape
    ('tuned decisions', (600,))
    >>> search.honest_score_ < search.unweighted_score_  # an error: lower is better
    True
    """

    def __init__(  # noqa: PLR0913 (the public face)
        self,
        estimator: Any,
        *,
        metric: Any = None,
        constraints: Any = None,
        strategies: Any = "auto",
        decision: Any = None,
        evaluate_on: Any = "auto",
        honest: Literal["halves", "holdout"] | float | None = "halves",
        n_candidates: int = 100,
        timeout: float | None = None,
        search_space: SearchSpace = None,
        calibrate: Literal["sigmoid", "isotonic"] | None = None,
        storage: Storage | StudyStorage = None,
        training: TrainingOptions | None = None,
        n_jobs: int | Literal["auto"] | None = None,
        callbacks: Sequence[SearchCallback] | None = None,
        verbose: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.constraints = constraints
        self.strategies = strategies
        self.decision = decision
        self.evaluate_on = evaluate_on
        self.honest = honest
        self.n_candidates = n_candidates
        self.timeout = timeout
        self.search_space = search_space
        self.calibrate = calibrate
        self.storage = storage
        self.training = training
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state

    @classmethod
    def from_settings(cls, estimator: Any, **settings: Any) -> Self:
        """A search from settings by their names, also of those that belong to `ExampleWeights`,
        `StudyStorage` or `TrainingOptions`, as they stand in a file of settings or on the command line.

        Where such a part is given as a whole, too, its fields count unless they are given by name.
        """
        parts = {name: settings.pop(name) for name in _PARTS if name in settings}
        flat = {**vars(SearchSettings.of(cls(estimator, **parts).get_params(deep=False)))}
        if unknown := [name for name in settings if name not in flat]:
            raise InvalidInputError(
                f"a search has no {', '.join(map(repr, unknown))}; its settings are {', '.join(flat)}.",
                argument=unknown[0],
            )
        return cls(**SearchSettings(**{**flat, **settings}).parameters())

    @classmethod
    def as_in_the_paper(cls, estimator: Any, metric: Any = None, **overrides: Any) -> Self:
        """A search with the settings of the paper's experiments; `overrides` are parameters that differ.

        It needs validation rows: `fit(X, y, validation=(X_val, y_val))`. What the paper's text says, where
        the authors' scripts differ and what is left open is in `docs/how-it-works.md`. The model and its loss
        are yours; the paper's networks had squared loss for numbers, hinge loss for two classes
        (`NetworkClassifier(loss="hinge")`) and cross-entropy for more.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> search = MetricSearch.as_in_the_paper(LogisticRegression(), "f1", n_candidates=50, batch_size=5)
        >>> search.settings.strategies, search.settings.batch_size, search.settings.final
        (('example weights',), 5, 'best')
        """
        asked = overrides.get("strategies")
        if any(isinstance(one, ExampleWeights) for one in (asked if isinstance(asked, list) else [asked])):
            raise InvalidInputError(
                "give settings of ExampleWeights by name, as in as_in_the_paper(…, radius=2.0).",
                argument="strategies",
            )
        return cls.from_settings(estimator, metric=metric, **{**paper_settings(), **overrides})

    def fit(
        self,
        X: Features,
        y: Labels,
        sample_weight: Any = None,
        *,
        columns: Mapping[str, Any] | None = None,
        groups: Any = None,
        validation: Any = None,
        fit_params: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> Self:
        """Search for the weights and keep the best model.

        Ctrl-C while candidates are trained ends with the best so far and a warning, once the models at α = 0
        and one candidate are trained. Before that, the second time, and with a storage, which goes on in the
        next call, it is a KeyboardInterrupt as usual.

        Parameters
        ----------
        X, y : training rows (n, D) and labels (n,)
        sample_weight : (n,), multiplies the learned weights, and counts wherever these rows are evaluated;
            rows of weight 0 never are
        columns : dict or data frame of per-row columns for the metric, the decision rule or an embedding that
            names them (a data frame if scikit-learn splits the rows, as in GridSearchCV)
        groups : (n,), numbers or texts: the query, patient or customer of each row. Rows of one group are
            never cut apart: not by held-out rows, folds, or the halves of the honest score
        validation : (X_val, y_val) or `Rows(X_val, y_val, sample_weight, columns, groups)`, from the
            distribution that matters. Without weights theirs are ones; for a metric that takes none, rows are
            drawn in proportion to them. A Pipeline belongs into the search, so that they go through it
        fit_params : dict of what the estimator's `fit` takes besides weights, such as
            {"callbacks": [lightgbm.early_stopping(20)]}; those of a Pipeline go to its last step unless they
            name another, as in {"scale__copy": True}. What has a value for each of the n rows (`init_score`)
            is cut with the folds. Each training gets a copy, so that callbacks keep nothing
        params : the same by scikit-learn's metadata routing, for what the estimator requests
        """
        settings = self.settings
        settings.check()  # before scikit-learn looks at the rows, for which it asks the estimator
        training = Rows(self._check_rows(X, y), y, sample_weight, columns, groups)
        given = as_rows(validation, "validation")
        if params:
            fit_params = _routed_params(self, fit_params, params)
        prepared = prepare(settings, training, given, fit_params=fit_params)
        if settings.callbacks:
            call_at_begin(settings, prepared.evaluator.metric)
        fitted = None
        try:
            if settings.storage is None:  # nothing could be kept, so Ctrl-C concludes with what there is
                fitted = run_search(prepared, concludes=True)
            else:
                with sigterm_like_ctrl_c():
                    fitted = run_search(prepared)
            self._keep(fitted)
        finally:
            if settings.callbacks:
                call_at_end(settings.callbacks, fitted, training, given)
        return self

    @property
    def settings(self) -> SearchSettings:
        """The parameters as one typed record."""
        return SearchSettings.of(self.get_params(deep=False))

    def predict(self, X: Features, *, columns: Mapping[str, Any] | None = None) -> Any:
        """Predict for new rows (n,) with the winner's model and decision rule.

        `columns` holds the columns that the decision rule needs, unless they are columns of X and were in
        training.
        """
        X = self._check_fitted_rows(X)
        if self.decision_ is None:
            return self.best_estimator_.predict(X)
        passed_columns = self.fitted_.evaluator.passed_columns
        in_X = [name for name in self.decision_.columns if name not in passed_columns]
        return self.fitted_.winner.decide(X, columns_from(columns, X, in_X))

    @available_if(lambda self: self._delegate("predict_proba"))
    def predict_proba(self, X: Features) -> Any:
        """Class probabilities (n, C) of the selected model.

        Without `calibrate` they are the model's own: of the weighted rows, not of those it is judged by. With
        it they are those of the evaluation rows; `predict` still decides by the model's own scores, so
        `predict_proba(X)[:, 1] > 0.5` can be another decision."""
        X = self._check_fitted_rows(X)
        if self.calibrate is None:
            return self.best_estimator_.predict_proba(X)
        if self.fitted_.winner.calibration is None:
            raise InvalidInputError(
                "the probabilities could not be calibrated, see result_.notes; those before calibration are "
                "best_estimator_.predict_proba(X).",
                argument="calibrate",
            )
        return self.fitted_.winner.probabilities(X)

    @available_if(lambda self: self._delegate("predict_log_proba"))
    def predict_log_proba(self, X: Features) -> Any:
        """Logarithms of `predict_proba` (n, C)."""
        if self.calibrate is not None:
            with np.errstate(divide="ignore"):
                return np.log(self.predict_proba(X))
        X = self._check_fitted_rows(X)
        return self.best_estimator_.predict_log_proba(X)

    @available_if(lambda self: self._delegate("decision_function"))
    def decision_function(self, X: Features) -> Any:
        """The winner's scores: (n,) for two classes, (n, C) for more."""
        X = self._check_fitted_rows(X)
        return self.best_estimator_.decision_function(X)

    def score(
        self,
        X: Features,
        y: Labels,
        sample_weight: Any = None,
        *,
        columns: Mapping[str, Any] | None = None,
    ) -> float:
        """The metric on these rows, negated where smaller is better, as model selection expects."""
        check_is_fitted(self)
        sign = 1.0 if self.result_.greater_is_better else -1.0
        return sign * self.metric_value(X, y, sample_weight, columns=columns)

    def metric_value(
        self,
        X: Features,
        y: Labels,
        sample_weight: Any = None,
        *,
        columns: Mapping[str, Any] | None = None,
    ) -> float:
        """The metric on these rows in its own units and direction.

        Rows of weight 0 do not count. For a metric that takes no weights, rows are drawn in proportion to
        them, the same ones every time.
        """
        rows = self._scored_rows(X, y, sample_weight, columns)
        return self.fitted_.evaluator.value_on(self.fitted_.winner, rows)

    def metric_values(
        self,
        X: Features,
        y: Labels,
        sample_weight: Any = None,
        *,
        columns: Mapping[str, Any] | None = None,
    ) -> dict[str, float]:
        """All metrics on these rows by name, in their own units; NaN where one is undefined."""
        rows, evaluator = self._scored_rows(X, y, sample_weight, columns), self.fitted_.evaluator
        predictions = evaluator.predictions_on(self.fitted_.winner, rows)
        return {name: evaluator.value_of(name, predictions, rows) for name in evaluator.metrics}

    def _scored_rows(
        self, X: Features, y: Labels, sample_weight: Any, columns: Mapping[str, Any] | None
    ) -> LabelledRows:
        given = Rows(self._check_fitted_rows(X), y, sample_weight, columns)
        evaluator = self.fitted_.evaluator
        rows = labelled_rows(given, self.fitted_.task, "scored", evaluator.column_names)
        return evaluator.rows_by_weight(rows)

    def example_weights(
        self, X: Features, y: Labels, *, columns: Mapping[str, Any] | None = None
    ) -> FloatArray:
        """The learned weights (n,) of any labelled rows, on the scale of the training rows' weights.

        `columns` holds the columns that the embedding took in training, unless they are columns of X.

        On the training rows these are `sample_weight_`, but for the user's own weights; and with
        `base_weights="covariate_shift"` or importance weights the model was trained with cross-fitted π,
        while here π comes from the average of the folds' classifiers.
        """
        check_is_fitted(self)
        if X is not None and _num_samples(X) != len(y):
            raise InvalidInputError(
                f"X has {_num_samples(X)} rows and y has {len(y)}; give a label to each row.", argument="y"
            )
        X, columns = self._features_and_columns(X, columns)
        weights: FloatArray = self.weight_function_(X, y, columns)
        return weights

    def iter_example_weights(
        self,
        source: Any,
        *,
        label: str | int | None = None,
        columns: Mapping[str, Any] | None = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> Iterator[FloatArray]:
        """`example_weights` of rows that do not fit in memory: yields an array for each chunk, in order.

        `source` is a Parquet or .npy file, a memory map, an iterable of frames, …; see
        `moew.data.iter_chunks`. `label` is the column that holds the labels, `columns` holds columns of all
        rows of the source that the embedding needs and the source does not have.
        """
        check_is_fitted(self)
        return self._iter_weights(iter_chunks(source, label=label, chunk_rows=chunk_rows), columns)

    def _iter_weights(
        self, chunks: Iterator[tuple[Features, Labels]], columns: Mapping[str, Any] | None
    ) -> Iterator[FloatArray]:
        of_all, start = columns_from(columns, None, ()), 0
        for X, y in chunks:
            rows = slice(start, start + len(y))
            yield self.example_weights(X, y, columns={name: of_all[name][rows] for name in of_all})
            start = rows.stop
        for name, values in of_all.items():
            if len(values) != start:
                raise InvalidInputError(
                    f"the column {name!r} has {len(values)} values, but there are {start} rows.",
                    argument="columns",
                )

    def downsample(
        self,
        rate: float,
        X: Any = None,
        y: Labels = None,
        *,
        sample_weight: Any = None,
        label: str | int | None = None,
        columns: Mapping[str, Any] | None = None,
        seed: int = 0,
        chunk_rows: int = CHUNK_ROWS,
    ) -> tuple[IntArray, FloatArray]:
        """Choose fewer rows to train on: row numbers of X, in order, and the weights to train them with.

        A row of weight w is kept with probability p = min(1, λ·w) and gets w/p, so that weighted losses
        stay unbiased; `rate`, the share kept, sets λ. Without X, the training rows are chosen from by
        `sample_weight_`, which includes the user's own weights. Else w is `example_weights` of X, y and
        `columns`, times `sample_weight` (n,). Without y, X may be rows that do not fit in memory, with their
        `label`, as in `iter_example_weights`.
        """
        check_is_fitted(self)
        rng = generator(seed, "downsample")
        if X is None:
            if any(given is not None for given in (y, sample_weight, label, columns)):
                raise InvalidInputError(
                    "y, sample_weight, label and columns belong to rows X; pass X, too.", argument="X"
                )
            kept, corrected = downsample_rows(self.sample_weight_, rate, rng)
            return self.training_rows_[kept], corrected
        if y is not None and label is not None:
            raise InvalidInputError(
                f"pass the labels as y or name their column {label!r}, not both.", argument="label"
            )
        if y is not None:
            weights = self.example_weights(X, y, columns=columns)
        else:
            parts = self.iter_example_weights(X, label=label, columns=columns, chunk_rows=chunk_rows)
            weights = np.concatenate([np.empty(0), *parts])
        if sample_weight is not None:
            given = np.asarray(sample_weight, dtype=np.float64)
            if given.shape != weights.shape:
                raise InvalidInputError(
                    f"sample_weight must hold a number for each of the {len(weights)} rows, got shape "
                    f"{given.shape}.",
                    argument="sample_weight",
                )
            weights = np.asarray(weights * given)
        return downsample_rows(weights, rate, rng)

    def save(self, path: str | Path, *, trusted: bool = False) -> None:
        """Write the fitted search to one file, for `moew.load`, which executes nothing of it.

        The file holds the models, the decisions, the weights and the result, not the rows and not the study.
        A model that only code can make again (a class of your own, a pickle) is refused unless `trusted`;
        loading it then needs the same.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        save_search(self.fitted_, self.n_features_in_ if names is None else list(names), Path(path), trusted)

    def get_metadata_routing(self) -> MetadataRouter:
        """How scikit-learn routes metadata: `fit` takes its own (`columns`, `groups`, `validation`, by
        `set_fit_request`), and passes to the estimator's `fit` what that requests, but its weights."""
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(
            estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = deepcopy(inner.classifier_tags)
        tags.regressor_tags = deepcopy(inner.regressor_tags)
        tags.input_tags = deepcopy(inner.input_tags)
        # Sparse rows work only with an embedding and base weights that do not use them.
        weights = resolve_strategies(self.strategies)[1]
        without_X = _is_one_of(
            weights.embedding, label=LabelEmbedding, directions=DirectionsEmbedding
        ) and _is_one_of(weights.base_weights, label_shift=LabelShift, uniform=UniformBaseWeights)
        tags.input_tags.sparse = inner.input_tags.sparse and without_X
        tags.target_tags.required = True
        return tags

    def _delegate(self, method: str) -> bool:
        if self.calibrate is not None and method in ("predict_proba", "predict_log_proba"):
            return True  # of any model that has scores
        # Raises AttributeError with the inner estimator's own message, as available_if expects.
        getattr(self.best_estimator_ if hasattr(self, "best_estimator_") else self.estimator, method)
        return True

    def _check_rows(self, X: Features, y: Labels) -> Features:
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None.", argument="y"
            )
        X = two_dimensional(X)
        if X.shape[1] == 0:
            raise InvalidInputError(
                f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.", argument="X"
            )
        validate_data(self, X, skip_check_array=True)
        return X

    def _check_fitted_rows(self, X: Features) -> Features:
        check_is_fitted(self)
        X = two_dimensional(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _features_and_columns(
        self, X: Features, columns: Mapping[str, Any] | None
    ) -> tuple[Features, dict[str, Any] | None]:
        """X without columns that only the metric has, and the columns if the weights depend on them."""
        of_weights = getattr(self.weight_function_, "wanted_columns", ())
        evaluator = self.fitted_.evaluator
        names = (*evaluator.choosing_columns, *of_weights)
        features = getattr(self, "feature_names_in_", None)
        own = None if features is None else [str(name) for name in features]
        # A feature of the same name is another column than that of the columns which `fit` had.
        others = {name for name in evaluator.passed_columns if name in (own or ())}
        in_X = [name for name in names if name not in others]
        columns = columns_from(columns, X, in_X) if self.weight_function_.takes_columns else None
        return without_columns(X, own, names), columns

    def _keep(self, fitted: FittedSearch) -> None:
        """Set the fitted attributes, as scikit-learn names them."""
        result, unweighted = fitted.result, fitted.unweighted
        self.fitted_, self.study_, self.result_ = fitted, fitted.study, result
        self.best_estimator_, self.decision_ = fitted.winner.model, fitted.winner.rule
        self.unweighted_estimator_ = getattr(unweighted, "model", None)
        self.unweighted_decision_ = getattr(unweighted, "rule", None)
        if fitted.evaluator.classes is not None:
            self.classes_ = fitted.evaluator.classes
        self.cv_results_ = cv_results(result.trials, result.greater_is_better)
        self.best_alpha_ = result.best_alpha
        self.best_params_ = dict(result.best_parameters)
        self.training_rows_, self.sample_weight_ = fitted.training_rows, fitted.weights
        self.weight_function_ = fitted.weight_function
        self.selected_ = result.selected
        self.best_score_, self.honest_score_ = result.honest.apparent, result.honest.value
        self.alpha_zero_score_ = result.alpha_zero.apparent
        self.unweighted_score_ = result.unweighted.apparent


def fitted_search(search: MetricSearch | FittedSearch) -> FittedSearch:
    """The record of a finished search, from a fitted estimator or from the record itself."""
    if isinstance(search, FittedSearch):
        return search
    check_is_fitted(search)
    return search.fitted_


def _routed_params(
    owner: Any, fit_params: Mapping[str, Any] | None, params: Mapping[str, Any]
) -> dict[str, Any]:
    """`fit_params` together with those of `params`, which the user passed to the owner's `fit` by name, that
    its estimator requests."""
    if not get_config()["enable_metadata_routing"]:
        given = ", ".join(f"{name!r}: …" for name in params)
        raise InvalidInputError(
            f"fit takes no {', '.join(map(repr, params))}. What the model's fit takes is passed as "
            f"fit_params={{{given}}}, or by name with scikit-learn's metadata routing, "
            "sklearn.set_config(enable_metadata_routing=True).",
            argument="fit_params",
        )
    known, routed = dict(fit_params or {}), dict(process_routing(owner, "fit", **params).estimator.fit)
    if twice := sorted(set(routed) & set(known)):
        raise InvalidInputError(
            f"{', '.join(map(repr, twice))} are passed by name and in fit_params; leave out one of them.",
            argument="fit_params",
        )
    return {**known, **routed}


def _is_one_of(part: Any, **kinds: type) -> bool:
    return part in kinds if isinstance(part, str) else isinstance(part, tuple(kinds.values()))
