"""ExampleWeightSearch: the paper's method as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from moew._util.progress import stage
from moew._util.seeds import generator
from moew._util.signals import sigterm_like_ctrl_c
from moew.data import CHUNK_ROWS, UserRows, iter_chunks, iter_rows, labelled_rows, two_dimensional
from moew.data._rows import columns_from, n_rows, without_columns
from moew.embedding import DirectionsEmbedding, LabelEmbedding
from moew.exceptions import Argument, InvalidInputError, MoewWarning
from moew.search._callbacks import SearchCallback, call_at_begin, call_at_end, trial_caller
from moew.search._conclude import conclude
from moew.search._loop import Outcome, Search, search_side_by_side
from moew.search._paper import paper_settings
from moew.search._prepare import Prepared, fit_weighting, prepare
from moew.search._result import FittedSearch
from moew.search._routing import routed_params
from moew.search._saved import save_search
from moew.search._searches import list_searches
from moew.search._settings import SearchSettings
from moew.search._stop import CutOff
from moew.search._tables import cv_results
from moew.search._ways import WEIGHTS
from moew.types import Array, FloatArray, IntArray, Labels, Rows
from moew.weighting import (
    LabelShift,
    UniformBaseWeights,
    downsample_rows,
    draw_in_proportion,
    expected_weights,
)

if TYPE_CHECKING:
    from moew.search._space import SearchSpace
    from moew.search._study import Storage


def run_search(prepared: Prepared, *, concludes: bool = False) -> FittedSearch:
    """Run a prepared search: Algorithm 1 beside the simple ways, the choice, honest scores.

    If `concludes`, a KeyboardInterrupt while candidates are trained ends with the result of what there is.
    """
    searches, outcomes = train_candidates(prepared, concludes=concludes)
    try:
        with stage("judging the ways and training the final model", prepared.settings.show_progress):
            return conclude(prepared, searches, outcomes)
    finally:
        for search in searches.values():
            search.study.close()


def train_candidates(
    prepared: Prepared, *, concludes: bool = False
) -> tuple[dict[str, Search], dict[str, Outcome]]:
    """Train all candidates of a prepared search, with others that join it; returns the searches of all ways,
    and their outcomes. If `concludes`, a KeyboardInterrupt ends it with what there is, and a warning."""
    settings = prepared.settings
    searches = list_searches(prepared, fit_weighting(prepared))
    crew = None if settings.storage is None else searches[WEIGHTS].study.crew(joins=settings.join)
    try:
        with nullcontext() if crew is None else crew.at_work():
            outcomes = search_side_by_side(
                list(searches.values()),
                n_batches=settings.n_batches,
                batch_size=settings.batch_size,
                n_candidates=settings.n_candidates,
                show_progress=settings.show_progress,
                on_told=trial_caller(settings.callbacks, list(searches)),
                most_failures=settings.most_failures,
                crew=crew,
                deadline=prepared.deadline,
                concludes=concludes,
            )
        cut_off = outcomes[0].cut_off
        if cut_off is None:
            for search in searches.values():
                search.study.tidy()
        elif cut_off.reason == "interrupt":
            _warn_of_interruption(cut_off)
    except BaseException:
        for search in searches.values():
            search.study.close()
        raise
    return searches, dict(zip(searches, outcomes, strict=True))


def _warn_of_interruption(cut_off: CutOff) -> None:
    warning = MoewWarning(
        f"interrupted: {cut_off.n_trained} of {cut_off.n_candidates} candidates are trained, and the search "
        "ends with the best of them. Ctrl-C once more ends it at once, without a result. With a ",
        Argument("storage"),
        " an interrupted search can go on.",
    )
    warnings.warn(warning, stacklevel=5)  # where `fit` was called


class ExampleWeightSearch(MetaEstimatorMixin, BaseEstimator):
    """Find the best way to the metric for `estimator`: example weights, or a simpler one where it is as good.

    Candidate weightings w(x, y; α) = c·π(y)·σ(z(x, y)ᵀα) (eq. 3) are proposed `batch_size` at a time,
    `n_batches` times. For each, models are trained and scored on rows that they were not trained on: the
    validation rows, which should come from the distribution that matters, and training rows out of fold.
    Beside them stand the simple ways: the unweighted model, a constant, tuned decisions, class weights,
    importance weights. What is handed out is the simplest way that is not worse beyond chance.

    Parameters
    ----------
    estimator : estimator
        Any classifier or regressor whose `fit` takes sample weights, or one with `fit_many`.
    metric : callable, Metric, scikit-learn scorer or name, or a list or dict of them, default None
        What the model is judged by. A bare function gets (y_true, decisions) and is maximised; see
        `make_metric`. A name is one of moew's, such as "precision_at_recall=0.95", or a scorer's. None is
        accuracy for classifiers and R² for regressors. Several, in a list or a dict of names: the first is
        optimised, the others are computed for every model that was tried; see `result_.pareto`.
    constraint : str, list of str or None, default None
        Bounds of metrics that are listed in `metric`, such as "fpr_gap <= 0.05". The best that keeps them is
        handed out, and kept means: also with the one-sided 95 % margin from bootstrap resamples of the judged
        rows. Where nothing keeps them, a warning says so, and what comes closest is handed out.
    decision : decision rule, its name, float or None, default None
        How a score becomes a decision, refitted for each candidate; None is the model's `predict`, or
        decisions tuned for the metric where that is better. A name is, for example, "tuned", "select=0.05"
        or "accurate@train"; a float is a threshold for the probability of the positive class.
    embedding : "directions", "autoencoder", "label", "discriminative", columns, transformer, function or \
Embedding
        z(x, y), the low-dimensional coordinates that the weights depend on. "directions" are the label, the
        metric's columns, a linear discriminant and principal components. Columns are a list such as
        ["age", "cost"], or "columns=age,cost", of columns of X or of the metadata.
    base_weights : "label_shift", "covariate_shift", "uniform", function or BaseWeights
        π, the weights at α = 0. If no validation rows are given there is no shift to estimate, and π = 1.
    sampler : "gp_bucb", "random", "annealing", "swarm", "differential_evolution", "grid", "cover", Sampler \
or one of Optuna's
        Where the next candidates come from.
    search_space : mapping of names to Optuna distributions, or None, default None
        Hyper-parameters of the estimator that are searched together with α, such as
        {"C": FloatDistribution(1e-4, 1e2, log=True)}; "step__C" for a Pipeline. Candidate 0 has the
        estimator's own. With the guard, a fifth of the candidates are unweighted models whose parameters
        TPE proposes: the simple way "hyper-parameters". Needs Optuna.
    radius : float or None, default None
        Radius R of the ball that α is searched in; None is the default, 4, which a benchmark chose.
    n_batches, batch_size : int, default 10 and 10
        B and K of the paper: B·K candidates besides α = 0. With the guard, a fifth of them are class weights
        (in regression, powers of the target).
    n_candidates : int or None, default None
        The number of candidates besides α = 0 as one number, in place of `n_batches`: so many are trained in
        batches of `batch_size`, of which the last may be smaller.
    alpha_zero_repeats : int, default 1
        How many α = 0 models are trained first; from two or more the search learns the metric's noise.
    stop_when : float or None, default None
        A gain in the metric's units, such as 0.002: the search for example weights stops after a batch if the
        upper confidence bound over the ball is less than this above the best value so far, or if the
        prediction interval is narrower than this everywhere. The first `batch_size` candidates, which are
        random, do not stop it. The simple ways still get their share.
        `result_.stopped` says why, and how many trainings were saved. Needs a sampler with a model, as
        "gp_bucb" is. None trains all candidates.
    timeout : float or None, default None
        Seconds for the search, counted from the begin of this `fit`: no candidate is begun after it, those
        that were begun are finished, and the best so far wins. The models at α = 0 and one candidate are
        always trained. What then follows takes its own time: finalists with more folds, and the final models.
        A model with `fit_many` trains a batch at once, and ends after it. `result_.cut_off` and a note say
        how many candidates were trained. With a storage the same call, with this or another timeout, goes on.
    validation : "auto", None, float, int, splitter or iterable, default "auto"
        Which rows candidates are judged on. "auto": the validation rows and training rows out of fold (two
        folds, five for the finalists), fewer of those the more their distribution differs, none beside 5,000
        validation rows. None: the validation rows alone, as in the paper. A whole number: so many folds.
        Without `X_val` also: the share of rows held out (no refit), or a splitter, whose pooled out-of-fold
        predictions are scored. After folds, what is handed out is trained again on all rows.
    final : "ensemble", "average" or "best", default "ensemble"
        What becomes of example weights: up to five models whose predictions are averaged (Caruana's greedy
        selection); one model trained with the average of their weights; or the single best, as in the paper.
    guard : bool, default True
        Whether a simple way is handed out unless example weights are better beyond chance. Without it,
        example weights are handed out, and no class weights are trained.
    honest : "halves", "holdout", float or None, default "halves"
        How `honest_score_` is computed: from random halves of the judged rows; or on rows set aside
        (0.3 of the validation rows, or the given share) that the search does not use; or not at all.
    calibrate : "sigmoid", "isotonic" or None, default None
        Whether `predict_proba` of what is handed out is calibrated on the judged rows, by scores of models
        that were not trained on them: with a sigmoid, or with an isotonic curve, which needs about a
        thousand rows. `predict` stays as it was judged. Costs one more training in each fold.
    storage : None, path, URL or Optuna storage, default None
        Where the study is stored. With a storage and an integer `random_state` an interrupted fit
        continues where it stopped. A study that another fit works on is refused.
    study_name : str, default "moew"
    join : bool, default False
        Whether this fit works on its study together with others that have `join=True`: any number of
        processes, on any machines that reach the storage, with the same data and settings. All of them end
        with the same result, the one that a single process would have. Needs a journal, SQLite or
        PostgreSQL.
    sample_weight_name : str, default "auto"
        The name of the weights in the estimator's `fit`, such as "step__weight"; "auto" is "sample_weight",
        for a Pipeline that of its last step.
    eval_share : float or None, default None
        A share of the training rows, such as 0.1, for a model that stops early (LightGBM, XGBoost, CatBoost,
        HistGradientBoosting): each training sets it aside, whole groups and all classes alike, the same rows
        for all candidates, and passes it to `fit` as `eval_set` with the candidate's weights. None sets
        nothing aside.
    n_jobs : int, "auto" or None, default None
        How many models are trained in parallel, through joblib; -1 is one for each core. "auto" trains in
        this process for ten seconds, as starting others takes a few itself, and then on all cores.
    candidate_timeout : float or None, default None
        Seconds that the training of one model may take. One that takes longer is ended, and its candidate is
        a failure. Models are then trained in worker processes, with one job too, and must be picklable. Not
        for models with `fit_many`, for threads and for clusters, where nothing can end a training.
    most_failures : float, default 0.9
        The share of failed candidates above which the search ends with the reasons, after a batch and from
        ten candidates on. 1 goes on as long as one candidate works.
    show_progress : bool or None, default None
        None shows a bar on a terminal and in a notebook, and nothing elsewhere.
    callbacks : list of SearchCallback or None, default None
        What is told of the search while `fit` runs, such as `moew.tracking.MlflowCallback()`. They change
        nothing of it: where one raises an error during the search, a warning says so. `compare` calls none.
    random_state : int, RandomState or None, default None

    Attributes
    ----------
    chosen_ : str, the way that is handed out, such as "tuned decisions" or "example weights"; all that
        follows is about it
    best_score_, honest_score_ : float
        Its score on the judged rows, and the same corrected for all choices, in the metric's own units and
        direction.
    best_estimator_ : its fitted model; a `ModelEnsemble` of several
    decision_ : its fitted decision rule, or None for the model's own decisions
    sample_weight_ : array (n,), the weights that its model was trained with, averaged over an ensemble
    weight_function_ : the same weights for any rows
    best_params_ : dict, the searched hyper-parameters of its model, in an ensemble those of the member with
        the most votes; empty without a search space
    training_rows_ : array (n,), the numbers of those rows in X: all, or those that were not held out
    unweighted_score_, unweighted_estimator_, unweighted_decision_ : the model that is trained without learned
        weights, for comparison; None if it could not be trained
    best_alpha_ : array (d,), of the best single candidate of the search
    alpha_zero_score_ : float, of the α = 0 model; with π = 1 it is the unweighted model
    cv_results_ : dict of arrays (n,), the candidates of the search for example weights in scikit-learn's
        layout, for `pd.DataFrame(search.cv_results_)`. `mean_test_score` is the metric on the judged rows,
        pooled over folds, with the sign that makes greater better, and NaN for failures, which `error`
        explains. `rank_test_score` is 1 for the best; failures come last. `params` and `param_NAME` are the
        searched hyper-parameters, and `alpha_0`, `alpha_1`, … the candidate's alpha.
    result_ : SearchResult, everything above, every way and every trial; print it, or `result_.to_frame()`
    study_ : WeightStudy
    fitted_ : FittedSearch, all of this as one record, which reports and plots use

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from moew.metrics import worst_class_error
    >>> X, y = make_classification(600, weights=[0.9], flip_y=0.05, random_state=0)
    >>> search = ExampleWeightSearch(
    ...     LogisticRegression(),
    ...     metric=worst_class_error(),
    ...     embedding="label",
    ...     n_batches=2,
    ...     batch_size=5,
    ...     random_state=0,
    ... )
    >>> search.fit(X[:200], y[:200], X_val=X[200:400], y_val=y[200:400]).predict(X[400:]).shape
    (200,)
    >>> search.chosen_, search.example_weights(X, y).shape
    ('tuned decisions', (600,))
    >>> search.honest_score_ < search.unweighted_score_  # an error: lower is better
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        metric: Any = None,
        constraint: Any = None,
        decision: Any = None,
        embedding: Any = "directions",
        base_weights: Any = "label_shift",
        sampler: Any = "gp_bucb",
        search_space: SearchSpace = None,
        radius: float | None = None,
        n_batches: int = 10,
        batch_size: int = 10,
        n_candidates: int | None = None,
        alpha_zero_repeats: int = 1,
        stop_when: float | None = None,
        timeout: float | None = None,
        validation: Any = "auto",
        final: Literal["ensemble", "average", "best"] = "ensemble",
        guard: bool = True,
        honest: Literal["halves", "holdout"] | float | None = "halves",
        calibrate: Literal["sigmoid", "isotonic"] | None = None,
        storage: Storage = None,
        study_name: str = "moew",
        join: bool = False,
        sample_weight_name: str = "auto",
        eval_share: float | None = None,
        n_jobs: int | Literal["auto"] | None = None,
        candidate_timeout: float | None = None,
        most_failures: float = 0.9,
        show_progress: bool | None = None,
        callbacks: Sequence[SearchCallback] | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.constraint = constraint
        self.decision = decision
        self.embedding = embedding
        self.base_weights = base_weights
        self.sampler = sampler
        self.search_space = search_space
        self.radius = radius
        self.n_batches = n_batches
        self.batch_size = batch_size
        self.n_candidates = n_candidates
        self.alpha_zero_repeats = alpha_zero_repeats
        self.stop_when = stop_when
        self.timeout = timeout
        self.validation = validation
        self.final = final
        self.guard = guard
        self.honest = honest
        self.calibrate = calibrate
        self.storage = storage
        self.study_name = study_name
        self.join = join
        self.sample_weight_name = sample_weight_name
        self.eval_share = eval_share
        self.n_jobs = n_jobs
        self.candidate_timeout = candidate_timeout
        self.most_failures = most_failures
        self.show_progress = show_progress
        self.callbacks = callbacks
        self.random_state = random_state

    @classmethod
    def as_in_the_paper(cls, estimator: Any, metric: Any = None, **overrides: Any) -> Self:
        """A search with the settings of the paper's experiments; `overrides` are parameters that differ.

        It needs validation rows: `fit(X, y, X_val=…, y_val=…)`. What the text says (Sections 3 and 5):

        - z(x, y) is the middle layer of a sigmoid autoencoder D → 100 → d → 100 → D of (x, y), not
          standardised, with λ = 0.5, trained for 10,000 steps of Adam at 0.001. d was 3 (spam, web pages), 4
          (crime, with 10 hidden nodes) and up to 30 (wine, where d = 8 was enough); here it is 8, or the
          number of columns if that is less: `embedding=AutoencoderEmbedding(n_dims=3, standardize=False)`.
        - π(y) = p_V(y) / p_T(y); half a row is added to the count of each class.
        - B = 10 batches of K = 20 (5 in crime), by GP-BUCB with p = q = 68.3 and a kernel of width R.
        - The GP's noise is that of the metric between uniform models: here of ten models at α = 0, whose
          weights are π(y). These ten, and the model without weights, can also be chosen.
        - The single best candidate on the validation rows alone is taken, with its own decisions.

        Where the authors' scripts differ, the text is followed: they fit width and amplitude of the kernel,
        with noise 1e-4 or 0.1, to targets with a prior mean of 0; they draw candidates from 10,000 points;
        and they have no π(y), but in crime a weight by population. What the text leaves open: R is 5, as in
        the wine script (1 in the others); the kernel's amplitude is fitted; the GP's targets are
        standardised; numbers are scaled for the autoencoder, which the scripts do not do; its mini-batches
        have 100 rows. The model and its loss are yours; the paper's networks had squared loss for numbers,
        hinge loss for two classes (`NetworkClassifier(loss="hinge")`) and cross-entropy for more.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> search = ExampleWeightSearch.as_in_the_paper(LogisticRegression(), "f1", batch_size=5)
        >>> search.n_batches, search.batch_size, search.guard, search.final
        (10, 5, False, 'best')
        """
        return cls(estimator, metric=metric, **{**paper_settings(), **overrides})

    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: Any = None,
        *,
        X_val: Rows = None,
        y_val: Labels = None,
        sample_weight_val: Any = None,
        metadata: Mapping[str, Any] | None = None,
        metadata_val: Mapping[str, Any] | None = None,
        groups: Any = None,
        groups_val: Any = None,
        fit_params: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> Self:
        """Search for the weights and keep the best model.

        Ctrl-C while candidates are trained gives up what is being trained, and ends with the best so far and
        a warning, if the models at α = 0 and one candidate are trained. Before that, the second time, and
        with a storage, which has all that was trained and goes on in the next call, it is a
        KeyboardInterrupt as usual.

        Parameters
        ----------
        X, y : training rows (n, D) and labels (n,)
        sample_weight : (n,), multiplies the learned weights
        X_val, y_val : validation rows and labels, from the distribution that matters. Inside a Pipeline
            they must be transformed like X: use `Pipeline(…, transform_input=["X_val"])`
        sample_weight_val : (m,), passed to the metric if it takes sample weights
        metadata, metadata_val : dict or data frame of per-row columns for the metric or the decision rule; of
            the training rows also for an embedding that names them, such as embedding=["cost"] (a data frame
            if scikit-learn splits the rows, as in GridSearchCV)
        groups, groups_val : (n,) and (m,), numbers or texts: the query, patient or customer of each row. Rows
            of one group are never cut apart: not by held-out rows, folds, or the halves of the honest score
        fit_params : dict of what the estimator's `fit` takes besides weights, such as
            {"callbacks": [lightgbm.early_stopping(20)]}; those of a Pipeline go to its last step unless they
            name another, as in {"scale__copy": True}. What has a value for each of the n rows (`init_score`)
            is cut with the folds. Each training gets a copy, so that callbacks keep nothing
        params : the same by scikit-learn's metadata routing, for what the estimator requests
        """
        settings = self.settings
        settings.check()  # before scikit-learn looks at the rows, for which it asks the estimator
        X = self._check_rows(X, y)
        X_val = None if X_val is None else two_dimensional(X_val)
        training = UserRows(X, y, sample_weight, metadata, groups)
        validation = UserRows(X_val, y_val, sample_weight_val, metadata_val, groups_val)
        prepared = prepare(settings, training, validation, fit_params=routed_params(self, fit_params, params))
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
            call_at_end(settings, fitted, training, validation)
        return self

    @property
    def settings(self) -> SearchSettings:
        """The parameters as one typed record."""
        return SearchSettings(**self.get_params(deep=False))

    def predict(self, X: Rows, *, metadata: Mapping[str, Any] | None = None) -> Any:
        """Predict for new rows (n,) with the winner's model and decision rule.

        `metadata` holds the columns that the decision rule needs, unless they are columns of X.
        """
        X = self._check_fitted_rows(X)
        if self.decision_ is None:
            return self.best_estimator_.predict(X)
        return self.fitted_.winner.decide(X, columns_from(metadata, X, self.decision_.columns))

    @available_if(lambda self: self._delegate("predict_proba"))
    def predict_proba(self, X: Rows) -> Any:
        """Class probabilities (n, C) of what is handed out.

        Without `calibrate` they are the model's own. A model that was trained with weights gives
        probabilities of the weighted rows, which are not those of the rows that it is judged by. With
        `calibrate` they are probabilities where the judged rows come from, and only they change: `predict`
        decides by the model's own scores, so `predict_proba(X)[:, 1] > 0.5` can be another decision.
        """
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
    def predict_log_proba(self, X: Rows) -> Any:
        """Logarithms of `predict_proba` (n, C)."""
        if self.calibrate is not None:
            with np.errstate(divide="ignore"):
                return np.log(self.predict_proba(X))
        X = self._check_fitted_rows(X)
        return self.best_estimator_.predict_log_proba(X)

    @available_if(lambda self: self._delegate("decision_function"))
    def decision_function(self, X: Rows) -> Any:
        """The winner's scores: (n,) for two classes, (n, C) for more."""
        X = self._check_fitted_rows(X)
        return self.best_estimator_.decision_function(X)

    def score(
        self,
        X: Rows,
        y: Labels,
        sample_weight: Any = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> float:
        """The metric on these rows, negated where smaller is better, as model selection expects."""
        check_is_fitted(self)
        sign = 1.0 if self.result_.greater_is_better else -1.0
        return sign * self.metric_value(X, y, sample_weight, metadata=metadata)

    def metric_value(
        self,
        X: Rows,
        y: Labels,
        sample_weight: Any = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> float:
        """The metric on these rows in its own units and direction."""
        given = UserRows(self._check_fitted_rows(X), y, sample_weight, metadata)
        evaluator = self.fitted_.evaluator
        rows = labelled_rows(given, self.fitted_.task, "scored", evaluator.column_names)
        return evaluator.value_on(self.fitted_.winner, rows)

    def metric_values(
        self,
        X: Rows,
        y: Labels,
        sample_weight: Any = None,
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, float]:
        """All metrics on these rows by name, in their own units; NaN where one is undefined."""
        given = UserRows(self._check_fitted_rows(X), y, sample_weight, metadata)
        evaluator = self.fitted_.evaluator
        rows = labelled_rows(given, self.fitted_.task, "scored", evaluator.column_names)
        return evaluator.values_on(self.fitted_.winner, rows)

    def example_weights(self, X: Rows, y: Labels, *, metadata: Mapping[str, Any] | None = None) -> FloatArray:
        """The learned weights (n,) of any labelled rows, on the scale of the training rows' weights.

        `metadata` holds the columns that the embedding took in training, if it takes any, unless they are
        columns of X.

        On the training rows these are `sample_weight_`, with two exceptions: they do not include the user's
        own weights, and with `base_weights="covariate_shift"`, or where importance weights are handed out,
        the model was trained with cross-fitted π, while here π comes from the average of the folds'
        classifiers.
        """
        check_is_fitted(self)
        if X is not None and _num_samples(X) != len(y):
            raise InvalidInputError(
                f"X has {_num_samples(X)} rows and y has {len(y)}; give a label to each row.", argument="y"
            )
        X, columns = self._features_and_columns(X, metadata)
        weights: FloatArray = self.weight_function_(X, y, columns)
        return weights

    def iter_example_weights(
        self,
        source: Any,
        *,
        label: str | int | None = None,
        metadata: Mapping[str, Any] | None = None,
        chunk_rows: int = CHUNK_ROWS,
    ) -> Iterator[FloatArray]:
        """`example_weights` of rows that do not fit in memory: yields an array for each chunk, in order.

        `source` is a Parquet or .npy file, a memory map, an iterable of frames, …; see
        `moew.data.iter_chunks`. `label` is the column that holds the labels, `metadata` holds columns of all
        rows of the source that the embedding needs and the source does not have.
        """
        check_is_fitted(self)
        return self._iter_weights(iter_chunks(source, label=label, chunk_rows=chunk_rows), metadata)

    def _iter_weights(
        self, chunks: Iterator[tuple[Rows, Labels]], metadata: Mapping[str, Any] | None
    ) -> Iterator[FloatArray]:
        parts = _Parts(metadata)
        for X, y in chunks:
            yield self.example_weights(X, y, metadata=parts.next(len(y)))
        parts.check_end()

    def downsample(
        self,
        rate: float,
        X: Any = None,
        y: Labels = None,
        *,
        sample_weight: Any = None,
        label: str | int | None = None,
        metadata: Mapping[str, Any] | None = None,
        seed: int = 0,
        chunk_rows: int = CHUNK_ROWS,
    ) -> tuple[IntArray, FloatArray]:
        """Choose fewer rows to train on: row numbers of X, in order, and the weights to train them with.

        A row of weight w is kept with probability p = min(1, λ·w) and gets w/p, so that weighted losses
        stay unbiased; `rate`, the share kept, sets λ. Without X, rows are chosen from the training rows, and
        w is `sample_weight_`, which includes the user's own weights. Else w is `example_weights` of X, y and
        `metadata`, times `sample_weight` (n,) if given. Without y, X may be rows that do not fit in memory,
        as in `iter_example_weights`, with their `label`; only their weights are kept in memory.
        """
        check_is_fitted(self)
        rng = generator(seed, "downsample")
        if X is None:
            if any(given is not None for given in (y, sample_weight, label, metadata)):
                raise InvalidInputError(
                    "y, sample_weight, label and metadata belong to rows X; pass X, too.", argument="X"
                )
            kept, corrected = downsample_rows(self.sample_weight_, rate, rng)
            return self.training_rows_[kept], corrected
        if y is not None and label is not None:
            raise InvalidInputError(
                f"pass the labels as y or name their column {label!r}, not both.", argument="label"
            )
        if y is not None:
            weights = self.example_weights(X, y, metadata=metadata)
        else:
            parts = self.iter_example_weights(X, label=label, metadata=metadata, chunk_rows=chunk_rows)
            weights = np.concatenate([np.empty(0), *parts])
        if sample_weight is not None:
            weights = _times(weights, sample_weight)
        return downsample_rows(weights, rate, rng)

    def suggest_rows(
        self,
        pool: Any,
        n: int,
        *,
        metadata: Mapping[str, Any] | None = None,
        seed: int = 0,
        chunk_rows: int = CHUNK_ROWS,
    ) -> IntArray:
        """The numbers of n rows to label next, chosen from rows without labels, preferably of high weight.

        Rows are drawn one after another without replacement, in proportion to the weight they are expected
        to have: the mean of w(x, y) over the classes by the winner's probabilities, or w(x, ŷ) at its
        prediction ŷ for a regressor and for a classifier without `predict_proba`. With the same seed, a
        smaller n gives the first rows of a larger n. The pool (m, D) is read once, `chunk_rows` at a time,
        and need not fit in memory; see `moew.data.iter_rows`. The chunk size does not change which rows
        are drawn, except where two of them are equal up to rounding. `metadata` holds columns (m,) of the
        pool that the embedding needs and the pool does not have.

        The paper only supposes that such rows help. Measured on four problems (`docs/active-sampling.md`),
        they were better than random rows on one, where training rows lack classes that count, and behind
        uncertainty sampling on three. With the guard a simple way is handed out more often than not, and
        its weights are mostly all alike: the draw is then a random one.
        """
        check_is_fitted(self)
        if isinstance(pool, list) and pool and isinstance(pool[0], list):
            pool = two_dimensional(pool)
        weights = self._iter_expected_weights(iter_rows(pool, chunk_rows=chunk_rows), metadata)
        return draw_in_proportion(weights, n, generator(seed, "suggest"))

    def _iter_expected_weights(
        self, chunks: Iterator[Rows], metadata: Mapping[str, Any] | None
    ) -> Iterator[FloatArray]:
        parts = _Parts(metadata)
        for rows in chunks:
            X, columns = self._features_and_columns(rows, parts.next(n_rows(rows)))
            weight = partial(self.example_weights, metadata=columns)
            yield expected_weights(self.best_estimator_, weight, self._check_fitted_rows(X))
        parts.check_end()

    def save(self, path: str | Path, *, trusted: bool = False) -> None:
        """Write the fitted search to one file, for `moew.load`, which executes nothing of it.

        The file holds the models, the decisions, the weights and the result, not the rows and not the study.
        A model that only code can make again (a class of your own, a pickle) is refused unless `trusted`;
        loading it then needs the same.
        """
        check_is_fitted(self)
        save_search(self, Path(path), trusted)

    def get_metadata_routing(self) -> MetadataRouter:
        """How scikit-learn routes metadata: `fit` takes its own (`metadata`, `groups`, `X_val`, …, by
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
        without_X = (
            _is_one_of(self.embedding, "label", LabelEmbedding)
            or _is_one_of(self.embedding, "directions", DirectionsEmbedding)
        ) and (
            _is_one_of(self.base_weights, "label_shift", LabelShift)
            or _is_one_of(self.base_weights, "uniform", UniformBaseWeights)
        )
        tags.input_tags.sparse = inner.input_tags.sparse and without_X
        tags.target_tags.required = True
        return tags

    def _delegate(self, method: str) -> bool:
        if self.calibrate is not None and method in ("predict_proba", "predict_log_proba"):
            return True  # of any model that has scores
        # Raises AttributeError with the inner estimator's own message, as available_if expects.
        getattr(self.best_estimator_ if hasattr(self, "best_estimator_") else self.estimator, method)
        return True

    def _check_rows(self, X: Rows, y: Labels) -> Rows:
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

    def _check_fitted_rows(self, X: Rows) -> Rows:
        check_is_fitted(self)
        X = two_dimensional(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _features_and_columns(
        self, X: Rows, metadata: Mapping[str, Any] | None
    ) -> tuple[Rows, dict[str, Any] | None]:
        """X without columns that only the metric has, and the columns if the weights depend on them."""
        of_weights = getattr(self.weight_function_, "wanted_columns", ())
        names = (*self.fitted_.evaluator.choosing_columns, *of_weights)
        features = getattr(self, "feature_names_in_", None)
        own = None if features is None else [str(name) for name in features]
        columns = columns_from(metadata, X, names) if self.weight_function_.takes_columns else None
        return without_columns(X, own, names), columns

    def _keep(self, fitted: FittedSearch) -> None:
        """Set the fitted attributes, as scikit-learn names them."""
        result, unweighted = fitted.result, fitted.unweighted
        self.fitted_ = fitted
        self.study_ = fitted.study
        self.result_ = result
        self.best_estimator_, self.decision_ = fitted.winner.model, fitted.winner.rule
        self.unweighted_estimator_ = None if unweighted is None else unweighted.model
        self.unweighted_decision_ = None if unweighted is None else unweighted.rule
        if fitted.evaluator.classes is not None:
            self.classes_ = fitted.evaluator.classes
        self.cv_results_ = cv_results(result.trials, result.greater_is_better)
        self.best_alpha_ = result.best_alpha
        self.best_params_ = dict(result.best_parameters)
        self.training_rows_ = fitted.training_rows
        self.sample_weight_ = fitted.weights
        self.weight_function_ = fitted.weight_function
        self.chosen_ = result.chosen
        self.best_score_ = result.best_score
        self.honest_score_ = result.honest_score
        self.alpha_zero_score_ = result.alpha_zero_score
        self.unweighted_score_ = result.unweighted_score


def fitted_search(search: ExampleWeightSearch | FittedSearch) -> FittedSearch:
    """The record of a finished search, from a fitted estimator or from the record itself."""
    if isinstance(search, FittedSearch):
        return search
    check_is_fitted(search)
    return search.fitted_


class _Parts:
    """The columns of all rows of a source, given out chunk by chunk."""

    def __init__(self, metadata: Mapping[str, Any] | None) -> None:
        self.columns: dict[str, Array] = columns_from(metadata, None, ())
        self.start = 0

    def next(self, n: int) -> dict[str, Array]:
        """The columns of the next n rows."""
        rows = slice(self.start, self.start + n)
        self.start += n
        return {name: values[rows] for name, values in self.columns.items()}

    def check_end(self) -> None:
        """Raise if a column has more values than there were rows."""
        for name, values in self.columns.items():
            if len(values) != self.start:
                raise InvalidInputError(
                    f"the column {name!r} has {len(values)} values, but there are {self.start} rows.",
                    argument="metadata",
                )


def _is_one_of(part: Any, name: str, kind: type) -> bool:
    return isinstance(part, kind) or (isinstance(part, str) and part == name)


def _times(weights: FloatArray, sample_weight: Any) -> FloatArray:
    given = np.asarray(sample_weight, dtype=np.float64)
    if given.shape != weights.shape:
        raise InvalidInputError(
            f"sample_weight must hold a number for each of the {len(weights)} rows, got shape {given.shape}.",
            argument="sample_weight",
        )
    return np.asarray(weights * given)
