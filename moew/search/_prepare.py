"""Build the parts of a search from the user's settings and rows, checked before anything is trained."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import _num_samples

from moew._util.fingerprint import fingerprint, unseen
from moew._util.progress import stage
from moew._util.seeds import draw_seed, generator, integer_seed
from moew.data import Fold, LabelledRows, SearchData, UserRows, labelled_rows
from moew.data._groups import coded_groups, count_groups
from moew.data._rows import check_training_labels, with_shared_groups
from moew.data._splits import cross_validation, given_validation, held_out_validation, set_aside, strata_of
from moew.decision import Tuned, resolve_decision
from moew.embedding import resolve_embedding
from moew.exceptions import Argument, InPython, InvalidInputError, MoewWarning, UnsupportedEstimatorError
from moew.metrics import accuracy, r_squared, resolve_constraints, resolve_metrics
from moew.metrics._direction import hint_of_direction
from moew.samplers import Ball
from moew.search._calibrate import check_calibrate
from moew.search._evaluate import Evaluator, column_names
from moew.search._judged_rows import judged_rows
from moew.search._settings import SearchSettings
from moew.search._space import ParameterSpace, resolve_space
from moew.search._stop import Deadline
from moew.search._study import WeightStudy
from moew.training import (
    EstimatorTrainer,
    EvalSplit,
    FitParams,
    check_takes_columns,
    check_takes_eval_rows,
    resolve_fit_params,
    resolve_trainer,
    with_seed,
)
from moew.types import Columns, DecisionRule, Metric, Task, Trainer, Weighting
from moew.weighting import ExampleWeighting, resolve_base_weights

MOST_GROUPS = 10  # of a column that decisions are tuned by


@dataclass(frozen=True)
class Prepared:
    """A search that is ready to run: settings, rows, trainer, evaluator and seed."""

    settings: SearchSettings
    data: SearchData
    trainer: Trainer
    evaluator: Evaluator
    seed: int
    test: LabelledRows | None = None  # not used for any choice
    notes: tuple[str, ...] = ()  # what was decided about the rows, for the result
    shifted: bool = False  # whether the validation rows are seen to be distributed otherwise
    space: ParameterSpace | None = None  # hyper-parameters that are searched, too
    deadline: Deadline | None = None  # of the training of candidates
    fit_params: FitParams = field(default_factory=FitParams)  # what the model's `fit` gets besides weights
    weight_name: str = "sample_weight"  # of the weights in the model's `fit`


def prepare(
    settings: SearchSettings,
    training: UserRows,
    validation: UserRows,
    test: UserRows | None = None,
    fit_params: Mapping[str, Any] | None = None,
) -> Prepared:
    """Build the parts of a search; raises on anything that cannot work, before anything is trained.

    `fit_params` are arguments of the model's `fit` besides its weights.
    """
    settings.check()
    deadline = None if settings.timeout is None else Deadline(float(settings.timeout))
    seed = draw_seed(settings.random_state)
    task = task_of(settings.estimator)
    timeout = None if settings.candidate_timeout is None else float(settings.candidate_timeout)
    trainer = resolve_trainer(settings.estimator, settings.sample_weight_name, settings.n_jobs, timeout)
    space = resolve_space(
        settings.search_space, settings.estimator, trainer.sample_weight_name, settings.ball_radius / 2
    )
    default = accuracy() if task == "classification" else r_squared()
    metrics = resolve_metrics(settings.metric, default)
    constraints = resolve_constraints(settings.constraint, metrics)
    name, metric = next(iter(metrics.items()))
    others = {other: one for other, one in metrics.items() if other != name}
    direction = hint_of_direction(metric)
    rule = resolve_decision(settings.decision)
    always_tuned = isinstance(rule, Tuned)
    names = column_names(metrics.values(), rule)
    data = _search_data(settings, task, training, validation, names, seed)
    params = resolve_fit_params(
        fit_params,
        settings.estimator,
        trainer.sample_weight_name,
        _num_samples(training.X),
        routed=isinstance(trainer, EstimatorTrainer) and trainer.routed,
    )
    check_takes_columns(settings.estimator, training.X, params.as_given)
    if settings.eval_share is not None:
        check_takes_eval_rows(settings.estimator, params, trainer.sample_weight_name)
    wanted = getattr(resolve_embedding(settings.embedding), "wanted_columns", ())
    _warn_of_unused_columns(data.validation.columns, list(metrics.values()), rule, wanted)
    classes = np.unique(data.training.y) if task == "classification" else None
    tuned = rule if isinstance(rule, Tuned) else _tuned_by(metric, data)
    evaluator = Evaluator(
        metric, None if always_tuned else rule, classes, tuned, always_tuned, others, name, constraints
    )
    with stage("trying the metric on made-up predictions", settings.show_progress):
        evaluator.rehearse(settings.estimator, data, generator(seed, "rehearsal"))
    with stage("choosing the rows to judge on", settings.show_progress):
        data, notes, shifted = judged_rows(data, settings.validation, evaluator, seed)
    notes = (direction, *notes) if direction else notes
    check_calibrate(settings.calibrate, settings.estimator, task, data, classes)
    params = _for_training_rows(params, settings, data, seed)
    if isinstance(trainer, EstimatorTrainer):
        trainer = replace(trainer, fit_params=params)
    prepared = Prepared(
        settings,
        data,
        trainer,
        evaluator,
        seed,
        notes=notes,
        shifted=shifted,
        space=space,
        deadline=deadline,
        fit_params=params,
        weight_name=trainer.sample_weight_name,
    )
    return prepared if test is None else _with_test(prepared, test)


def _for_training_rows(params: FitParams, settings: SearchSettings, data: SearchData, seed: int) -> FitParams:
    """The fit parameters of the rows that are trained on, and rows to stop by in every fold."""
    if data.rows_trained is not None:
        params = params.take(data.rows_trained)
    if settings.eval_share is None:
        return params
    strata, groups = strata_of(data.training.y, data.task), data.training.groups
    split = EvalSplit(float(settings.eval_share), seed, strata, groups)
    params = replace(params, split=split)
    for train in (None, *(fold.train for fold in (*data.folds, *data.finalist_folds))):
        split(train)  # raises where there are too few rows
    return params


def fit_weighting(prepared: Prepared) -> ExampleWeighting:
    """The search's embedding and base weights, fitted on the training rows."""
    settings, data, seed = prepared.settings, prepared.data, prepared.seed
    embedding = _seeded(resolve_embedding(settings.embedding), integer_seed(seed, "embedding"))
    # Validation rows split off the training rows have the same distribution: no shift, so π = 1.
    chosen = settings.base_weights if data.given_validation else "uniform"
    base_weights = _seeded(resolve_base_weights(chosen), integer_seed(seed, "baseline"))
    training, validation = data.training, data.given
    wanted = (*prepared.evaluator.choosing_columns, *getattr(embedding, "wanted_columns", ()))
    names = [name for name in dict.fromkeys(wanted) if name in training.columns]
    given = settings.embedding
    what = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
    with stage(f"fitting the embedding ({what})", settings.show_progress):
        return ExampleWeighting(embedding, base_weights).fit(
            training.X,
            training.y,
            validation.X,
            validation.y,
            task=data.task,
            sample_weight=training.sample_weight,
            columns={name: training.columns[name] for name in names},
        )


def make_study(prepared: Prepared, weighting: Weighting, **changes: Any) -> WeightStudy:
    """The study of a search, in memory or in the storage that the settings name; `changes` are arguments of
    `WeightStudy` that differ from the settings."""
    settings = prepared.settings
    arguments: dict[str, Any] = {
        "domain": changes.get("domain") or Ball(weighting.n_dims, settings.ball_radius),
        "sampler": settings.sampler,
        "greater_is_better": prepared.evaluator.metric.greater_is_better,
        "n_initial": settings.batch_size,
        "alpha_zero_repeats": settings.alpha_zero_repeats,
        "storage": settings.storage,
        "name": settings.study_name,
        "seed": prepared.seed,
        "fingerprint": "" if settings.storage is None else _fingerprint(prepared, weighting),
    }
    return WeightStudy(weighting, **{**arguments, **changes})


def task_of(estimator: Any) -> Task:
    """Whether the estimator classifies or regresses."""
    if is_classifier(estimator):
        return "classification"
    if is_regressor(estimator):
        return "regression"
    raise UnsupportedEstimatorError(
        f"{estimator!r} is neither a classifier nor a regressor; moew needs an estimator that says which.",
        argument="estimator",
    )


def _tuned_by(metric: Metric, data: SearchData) -> Tuned:
    """How decisions are tuned: by the groups of a column of the metric that the model may see, too."""
    in_X = getattr(data.training.X, "columns", ())
    seen = [name for name in metric.required_columns if name in in_X]
    few = [name for name in seen if len(np.unique(data.validation.columns[name].astype(str))) <= MOST_GROUPS]
    return Tuned(few[0] if len(few) == 1 else None)


def checked_test_rows(given: UserRows, evaluator: Evaluator, task: Task) -> LabelledRows:
    """The user's test rows, checked."""
    if given.X is None or given.y is None:
        raise InvalidInputError("test rows need both X_test and y_test.", argument="X_test")
    return labelled_rows(given, task, "test", evaluator.column_names)


def _with_test(prepared: Prepared, given: UserRows) -> Prepared:
    evaluator, data = prepared.evaluator, prepared.data
    rows = checked_test_rows(given, evaluator, data.task)
    if rows.groups is not None and count_groups(rows.groups) < 2:
        warning = MoewWarning(
            "all test rows belong to one group: how much scores depend on the choice of test rows cannot be "
            "told.",
            argument="groups_test",
        )
        warnings.warn(warning, stacklevel=4)
    evaluator.rehearse_test(prepared.settings.estimator, rows, data, generator(prepared.seed, "rehearsal"))
    return replace(prepared, test=rows)


def _search_data(
    settings: SearchSettings,
    task: Task,
    training: UserRows,
    validation: UserRows,
    names: tuple[str, ...],
    seed: int,
) -> SearchData:
    training, validation = with_shared_groups(training, validation)
    rows = labelled_rows(training, task, "training", names)
    check_training_labels(rows, task)
    if (validation.X is None) != (validation.y is None):
        raise InvalidInputError("X_val and y_val go together: pass both, or neither.", argument="X_val")
    if validation.X is None and any(
        of is not None for of in (validation.sample_weight, validation.metadata, validation.groups)
    ):
        raise InvalidInputError(
            "sample_weight_val, metadata_val and groups_val need X_val and y_val, too.", argument="X_val"
        )
    if validation.X is not None:
        data = given_validation(task, rows, labelled_rows(validation, task, "validation", names))
    elif isinstance(settings.validation, str):  # "auto": `judged_rows` makes the folds
        if rows.groups is not None:
            coded_groups(rows.groups)  # raises if there is only one
        every = np.arange(len(rows))
        data = SearchData(task, rows, rows, (Fold(every, every),), given_validation=False)
    elif settings.validation is None:
        raise InvalidInputError(
            Argument("validation", None),
            " is for given validation rows: pass ",
            Argument("X_val and y_val"),
            ".",
            argument="validation",
        )
    elif isinstance(settings.validation, float | np.floating):
        share = float(settings.validation)
        data = held_out_validation(task, rows, share, generator(seed, "split"))
    else:
        data = cross_validation(task, rows, settings.validation, generator(seed, "split"))
    if settings.honest == "halves":
        _check_halves(data)
    if settings.holdout_share is None:
        return data
    return set_aside(data, settings.holdout_share, generator(seed, "holdout"))


def _check_halves(data: SearchData) -> None:
    """Raise if the judged rows cannot be halved, because all belong to one group."""
    apart = data.given_validation or data.rows_trained is not None  # given, or held out
    groups, rows = data.validation.groups, "validation rows" if apart else "rows"
    if groups is not None and count_groups(groups) < 2:
        raise InvalidInputError(
            f"all {rows} belong to one group, and groups are not cut apart, so that there are no halves for "
            f"the honest score. Give {rows} of more groups, or ask for no honest score with ",
            Argument("honest"),
            ".",
            argument="groups",
        )


def _warn_of_unused_columns(
    columns: Columns, metrics: Sequence[Metric], rule: DecisionRule | None, wanted: Sequence[str]
) -> None:
    """Warn about columns that nothing uses: a misspelt optional column would be ignored silently."""
    if any(metric.known_columns is None for metric in metrics):
        return
    used = {*column_names(metrics, rule), *(n for metric in metrics for n in metric.known_columns or ())}
    if unused := sorted(set(columns) - used - set(wanted)):  # `wanted` are the embedding's
        warnings.warn(
            f"neither the metric nor the decision takes the columns {unused}; they take {sorted(used)}.",
            MoewWarning,
            stacklevel=4,
        )


def _fingerprint(prepared: Prepared, weighting: Weighting) -> str:
    """The fingerprint that a stored study must have to be continued: of data, model, metric and rule."""
    settings, data, evaluator = prepared.settings, prepared.data, prepared.evaluator
    training, validation = data.training, data.validation
    compared = {
        "estimator": settings.estimator,
        "metric": evaluator.metric,
        "rule": evaluator.tuned if evaluator.always_tuned else evaluator.rule,
        "weight name": prepared.weight_name,
    }
    params = prepared.fit_params
    if params:  # fitted without, a study keeps the fingerprint that it had before there were any
        compared["fit_params"] = {"given": params.as_given, "per row": params.per_row}
        compared["eval share"] = settings.eval_share
    # Metrics for which more is recorded; others are computed from what is there in any case.
    if further := [one for one in evaluator.others.values() if one.response in (None, "score", "proba")]:
        compared["other metrics"] = further
    _check_all_seen(compared)
    folds = [numbers for fold in data.folds for numbers in (fold.train, fold.scored) if numbers is not None]
    of_rows = [
        array
        for rows in (training, validation)
        for array in (
            rows.y,
            rows.sample_weight,
            *(rows.columns[name] for name in sorted(rows.columns)),
            rows.groups,
        )
        if array is not None
    ]
    of_weighting = [weighting.Z_, weighting.pi_] if isinstance(weighting, ExampleWeighting) else []
    return fingerprint(compared, [*of_weighting, *folds, *of_rows], [training.X, validation.X])


def _check_all_seen(compared: Mapping[str, Any]) -> None:
    """Raise if a stored study could not tell whether model, metric and rule are the same another time."""
    versioned = {"metric"} if getattr(compared["metric"], "version", "") else set()
    hidden = unseen({name: part for name, part in compared.items() if name not in versioned})
    if not hidden:
        return
    raise InvalidInputError(
        "a stored study is only continued with the same model, metric and decision, but moew cannot look "
        f"into {'; '.join(hidden[:3])}. Answer for it with a version, which you change when it changes: ",
        InPython(
            "make_metric(…, version='1') for a metric, or an attribute __version__ = '1' of your function or "
            "class; or do without "
        ),
        Argument("storage"),
        ".",
        argument="metric" if hidden[0].startswith("metric") else "estimator",
    )


def _seeded(part: Any, seed: int) -> Any:
    """The part with its seed set if it is a scikit-learn estimator; else unchanged."""
    return with_seed(part, seed) if hasattr(part, "get_params") else part
