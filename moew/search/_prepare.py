"""Build the parts of a search from the user's settings and rows, checked before anything is trained.

Candidates are evaluated on the given validation rows, and on training rows out of fold: few validation rows
cannot tell candidates apart. Where the training rows are distributed otherwise, fewer of them count; see
`rows_like`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import _num_samples

from moew._util.progress import stage
from moew._util.seeds import draw_seed, generator, integer_seed
from moew.data import (
    Fold,
    LabelledRows,
    Rows,
    SearchData,
    by_weight,
    check_training_labels,
    coded_groups,
    columns_from,
    copies_together,
    count_groups,
    cross_validation,
    drawn_by_weight,
    evaluated_rows,
    given_validation,
    held_out_validation,
    labelled_rows,
    lone_labels,
    of_equal_weight,
    out_of_fold,
    set_aside,
    strata_of,
    weight_notes,
    with_shared_groups,
)
from moew.decision import Tuned, resolve_decision
from moew.embedding import resolve_embedding
from moew.exceptions import Argument, InvalidInputError, MoewWarning, UnsupportedEstimatorError
from moew.metrics import hint_of_direction, resolve_constraints, resolve_metrics
from moew.samplers import Ball
from moew.search._calibrate import check_calibrate
from moew.search._evaluate import Evaluator, column_names
from moew.search._loop import Deadline
from moew.search._stored import fingerprint_of
from moew.search._study import WeightStudy
from moew.training import (
    EstimatorTrainer,
    EvalSplit,
    FitParams,
    ManyTrainer,
    check_takes_columns,
    check_takes_eval_rows,
    resolve_fit_params,
    resolve_trainer,
    with_seed,
)
from moew.types import IntArray, Task, Trainer, Weighting
from moew.weighting import ExampleWeighting, joint_density_ratio, resolve_base_weights, rows_like

if TYPE_CHECKING:
    from moew.search._optuna import ParameterSpace
    from moew.search._settings import SearchSettings


SEARCH_FOLDS, FINALIST_FOLDS = 2, 5
ENOUGH_GIVEN = 5000  # with so many validation rows, no training rows are needed
LEAST_SHARE = 0.25  # of the validation rows: fewer training rows are not worth models of fewer rows
MOST_EVALUATED = 10_000  # training rows that are evaluated
_FEWEST_DRAWN = 10  # rows by their weight: five folds of them have two each


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
    space: ParameterSpace | None = None  # hyper-parameters that are searched, too
    deadline: Deadline | None = None  # of the training of candidates
    fit_params: FitParams = field(default_factory=FitParams)  # what the model's `fit` gets besides weights
    weight_name: str = "sample_weight"  # of the weights in the model's `fit`


def prepare(
    settings: SearchSettings,
    training: Rows,
    validation: Rows,
    test: Rows | None = None,
    fit_params: Mapping[str, Any] | None = None,
) -> Prepared:
    """Build the parts of a search; raises on anything that cannot work, before anything is trained.

    `fit_params` are arguments of the model's `fit` besides its weights.
    """
    settings.check()
    deadline = None if settings.timeout is None else Deadline(float(settings.timeout))
    seed, estimator, task = draw_seed(settings.random_state), settings.estimator, task_of(settings.estimator)

    # The model, and what it is judged by.
    timeout = None if settings.candidate_timeout is None else float(settings.candidate_timeout)
    trainer = resolve_trainer(estimator, settings.sample_weight_name, settings.n_jobs, timeout)
    space = None
    if settings.search_space is not None:
        from moew.search._optuna import resolve_space

        half_width = settings.ball_radius / 2  # of the box: half as wide as the ball
        space = resolve_space(settings.search_space, estimator, trainer.sample_weight_name, half_width)
    metrics = resolve_metrics(settings.metric, task)
    constraints = () if settings.constraints is None else resolve_constraints(settings.constraints, metrics)
    direction = hint_of_direction(next(iter(metrics.values())))
    rule = resolve_decision(settings.decision)

    # The rows, and what `fit` gets besides.
    takes_weights = all(metric.takes_sample_weight for metric in metrics.values())
    names = column_names(metrics.values(), rule)
    # Of one side at least: a column of X of the same name need not be the same, and does not stand for it.
    passed = {name for rows in (training, validation) for name in columns_from(rows.columns, None, ())}
    in_X = tuple(name for name in names if name not in passed)
    data, of_rows = _search_data(settings, task, training, validation, in_X, takes_weights, seed)
    params = FitParams()
    if fit_params is not None or settings.eval_share is not None:
        params = _fit_params(fit_params, settings, trainer, _num_samples(training.X))
    check_takes_columns(estimator, training.X, params.as_given)
    wanted = getattr(resolve_embedding(settings.embedding), "wanted_columns", ())

    # Both together: what is evaluated on which rows.
    classes = np.unique(data.training.y) if task == "classification" else None
    (name, metric), *others = metrics.items()
    evaluator = Evaluator(
        metric,
        None if isinstance(rule, Tuned) else rule,
        classes,
        rule if isinstance(rule, Tuned) else Tuned(),
        isinstance(rule, Tuned),
        dict(others),
        name,
        constraints,
        tuple(n for n in names if n in passed),
    )
    _warn_of_unused_columns({*data.training.columns, *data.validation.columns} - set(wanted), evaluator)
    with stage("trying the metric on made-up predictions", settings.verbose):
        evaluator.rehearse(estimator, data, generator(seed, "rehearsal"))
    with stage("choosing the rows to evaluate on", settings.verbose):
        data, notes = evaluation_rows(data, settings.evaluate_on, evaluator, seed)
    if not takes_weights:
        data = of_equal_weight(data)
    notes = (*([direction] if direction else []), *notes, *of_rows)
    if settings.calibrate is not None:
        check_calibrate(settings.calibrate, estimator, task, data, classes)
    if params or settings.eval_share is not None:
        params = _for_training_rows(params, settings, data, seed)
        if isinstance(trainer, EstimatorTrainer):
            trainer = replace(trainer, fit_params=params)
    rows = None if test is None else _test_rows(settings, evaluator, data, test, seed)
    parts = settings, data, trainer, evaluator, seed, rows
    return Prepared(*parts, notes, space, deadline, params, trainer.sample_weight_name)


def _fit_params(
    given: Mapping[str, Any] | None,
    settings: SearchSettings,
    trainer: EstimatorTrainer | ManyTrainer,
    n_rows: int,
) -> FitParams:
    """The user's arguments of the model's `fit`, checked against it as the rows to stop by are."""
    estimator, weight_name = settings.estimator, trainer.sample_weight_name
    routed = isinstance(trainer, EstimatorTrainer) and trainer.routed
    params = resolve_fit_params(given, estimator, weight_name, n_rows, routed=routed)
    if settings.eval_share is not None:
        check_takes_eval_rows(estimator, params, weight_name)
    return params


def _for_training_rows(params: FitParams, settings: SearchSettings, data: SearchData, seed: int) -> FitParams:
    """The fit parameters of the rows that are trained on, and rows to stop by in every fold."""
    if data.rows_trained is not None:
        params = params.take(data.rows_trained)
    if settings.eval_share is None:
        return params
    strata, groups = strata_of(data.training.y, data.task), data.training.groups
    split = EvalSplit(float(settings.eval_share), seed, strata, groups)
    for train in (None, *(fold.train for fold in (*data.folds, *data.finalist_folds))):
        split(train)  # raises where there are too few rows
    return replace(params, split=split)


def fit_weighting(prepared: Prepared) -> ExampleWeighting:
    """The search's embedding and base weights, fitted on the training rows."""
    settings, data, seed = prepared.settings, prepared.data, prepared.seed
    embedding = resolve_embedding(settings.embedding)
    # Validation rows split off the training rows have the same distribution: no shift, so π = 1.
    chosen = settings.base_weights if data.given_validation else "uniform"
    base_weights = resolve_base_weights(chosen)
    if hasattr(embedding, "get_params"):
        embedding = with_seed(embedding, integer_seed(seed, "embedding"))
    if hasattr(base_weights, "get_params"):
        base_weights = with_seed(base_weights, integer_seed(seed, "baseline"))
    training, validation = data.training, given_by_weight(prepared)
    wanted = (*prepared.evaluator.choosing_columns, *getattr(embedding, "wanted_columns", ()))
    names = [name for name in dict.fromkeys(wanted) if name in training.columns]
    given = settings.embedding
    what = given if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
    with stage(f"fitting the embedding ({what})", settings.verbose):
        return ExampleWeighting(embedding, base_weights).fit(
            training.X,
            training.y,
            validation.X,
            validation.y,
            task=data.task,
            sample_weight=training.sample_weight,
            columns={name: training.columns[name] for name in names},
        )


def given_by_weight(prepared: Prepared) -> LabelledRows:
    """The given validation rows, for what learns how they are distributed and takes no weights: drawn in
    proportion to those that the user gave them."""
    given = prepared.data.given
    if given.sample_weight is None or len(given) == 0:
        return given
    drawn = drawn_by_weight(given.sample_weight, generator(prepared.seed, "given by weight"))
    if len(drawn) < _FEWEST_DRAWN:  # a few rows have nearly all the weight
        heaviest = np.argsort(-given.sample_weight, kind="stable")[:_FEWEST_DRAWN]
        drawn = np.sort(heaviest[given.sample_weight[heaviest] > 0])
    return given.take(drawn)


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
        "fingerprint": "" if settings.storage is None else fingerprint_of(prepared, weighting),
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


def checked_test_rows(given: Rows, evaluator: Evaluator, task: Task) -> LabelledRows:
    """The user's test rows, checked, as far as they are evaluated: see `Evaluator.rows_by_weight`."""
    if given.X is None or given.y is None:
        raise InvalidInputError("test rows need X and y.", argument="test")
    return evaluator.rows_by_weight(labelled_rows(given, task, "test", evaluator.column_names))


def _test_rows(
    settings: SearchSettings, evaluator: Evaluator, data: SearchData, given: Rows, seed: int
) -> LabelledRows:
    rows = checked_test_rows(given, evaluator, data.task)
    if rows.groups is not None and count_groups(rows.groups) < 2:
        told = "how much scores depend on the choice of test rows cannot be told."
        warning = MoewWarning(f"all test rows belong to one group: {told}", argument="test")
        warnings.warn(warning, stacklevel=4)
    evaluator.rehearse(settings.estimator, data, generator(seed, "rehearsal"), rows)
    return rows


def _search_data(
    settings: SearchSettings,
    task: Task,
    training: Rows,
    validation: Rows,
    names: tuple[str, ...],
    takes_weights: bool,
    seed: int,
) -> tuple[SearchData, tuple[str, ...]]:
    """The rows of a search, and notes about them."""
    training, validation = with_shared_groups(training, validation)
    rows = labelled_rows(training, task, "training", names)
    check_training_labels(rows, task)
    if validation.X is None:
        cut_by_user = not isinstance(settings.evaluate_on, str | float | np.floating | Integral)
        rows, _, notes = copies_together(task, rows, None, cut_by_user=cut_by_user)
        data = _split(settings, task, rows, seed)
    else:
        given = labelled_rows(validation, task, "validation", names)
        if rows.sample_weight is not None and given.sample_weight is None:
            given = replace(given, sample_weight=given.own_weights)
        data = given_validation(task, rows, given)
        rows, known, notes = copies_together(task, rows, given)
        data = replace(data, training=rows, validation=known or given)
    data, by_their_weight = by_weight(data, takes_weights, generator(seed, "by weight"))
    groups = data.validation.groups
    if settings.honest == "halves" and groups is not None and count_groups(groups) < 2:
        apart = data.given_validation or data.rows_trained is not None  # given, or held out
        what = "validation rows" if apart else "rows"
        raise InvalidInputError(
            f"all {what} belong to one group, and groups are not cut apart, so that there are no halves for "
            f"the honest score. Give {what} of more groups, or ask for no honest score with ",
            Argument("honest"),
            ".",
            argument="groups",
        )
    if settings.holdout_share is not None:
        data = set_aside(data, settings.holdout_share, generator(seed, "holdout"))
    return data, (*notes, *by_their_weight)


def _split(settings: SearchSettings, task: Task, rows: LabelledRows, seed: int) -> SearchData:
    """Training and validation rows, split as the settings say."""
    if isinstance(settings.evaluate_on, str) and settings.evaluate_on == "validation":
        told = " is for given validation rows: pass "
        raise InvalidInputError(
            Argument("evaluate_on", settings.evaluate_on), told, Argument("validation"), "."
        )
    if isinstance(settings.evaluate_on, str):  # "auto": `evaluation_rows` makes the folds
        if rows.groups is not None:
            coded_groups(rows.groups)  # raises if there is only one
        every = np.arange(len(rows))
        return SearchData(task, rows, rows, (Fold(every, every),), given_validation=False)
    if isinstance(settings.evaluate_on, float | np.floating):
        return held_out_validation(task, rows, float(settings.evaluate_on), generator(seed, "split"))
    return cross_validation(task, rows, settings.evaluate_on, generator(seed, "split"))


def evaluation_rows(
    data: SearchData, evaluate_on: Any, evaluator: Evaluator, seed: int
) -> tuple[SearchData, tuple[str, ...]]:
    """The search data with training rows evaluated out of fold, where that is asked for and possible; and
    notes that say what was done."""
    automatic = isinstance(evaluate_on, str) and evaluate_on == "auto"
    if not automatic and not (isinstance(evaluate_on, Integral) and data.given_validation):
        unused = data.given_validation and not isinstance(evaluate_on, str)
        note = "a share of rows or a splitter is not used beside given validation rows."
        return data, (note,) if unused else ()
    training, given = data.training, data.validation
    allowed = evaluated_rows(training, data.task, evaluator.takes_weights, generator(seed, "by weight"))
    if not data.given_validation:
        return _all_out_of_fold(data, allowed, seed), ()
    reason = _why_not(data, evaluator, len(given) if automatic else 0)
    if reason is None:
        try:
            ratio = joint_density_ratio(
                training.X,
                training.y,
                given.X,
                given.y,
                task=data.task,
                seed=integer_seed(seed, "ratio"),
                columns=(training.columns, given.columns),
                weights=(training.sample_weight, given.sample_weight),
            )[allowed]
        except InvalidInputError as error:  # columns that the model may take all the same, such as dates
            reason = f"how they differ from the training rows cannot be told: {str(error).rstrip('.')}"
    alone = f"evaluated on the {len(given):,} validation rows alone"
    if reason is not None and automatic:
        return data, (f"{alone}: {reason}.",)
    if reason is not None:
        raise InvalidInputError(
            Argument("evaluate_on", evaluate_on),
            f" cannot evaluate training rows beside the given validation rows: {reason}.",
        )
    if automatic:
        folds = SEARCH_FOLDS, min(FINALIST_FOLDS, _fewest_of_a_class(data))
    else:
        folds = _folds_asked(data, int(evaluate_on))
    groups = None if training.groups is None else training.groups[allowed]
    drawn, effective = rows_like(ratio, generator(seed, "judged"), MOST_EVALUATED, groups)
    shifted, worth = effective < len(ratio), f"are worth {effective:,.0f} of"
    if len(drawn) < max(FINALIST_FOLDS, LEAST_SHARE * len(given)):
        many = f"{len(ratio):,} training rows {worth} their kind"
        return data, (f"{alone}: {many if shifted else 'there are too few training rows'}.",)
    note = f"evaluated on {len(given):,} validation rows and {len(drawn):,} training rows out of fold"
    if shifted:
        others = f"of {len(ratio):,}, which are distributed otherwise: they {worth} the validation rows' kind"
        note = f"{note} ({others})"
    left = weight_notes(training, len(allowed), "training rows")
    data = replace(data, n_worth=float(effective))
    return out_of_fold(data, allowed[drawn], *folds, generator(seed, "folds")), (f"{note}.", *left)


def _all_out_of_fold(data: SearchData, evaluated: IntArray, seed: int) -> SearchData:
    """Without validation rows: the rows numbered `evaluated` out of fold, up to a number of them."""
    if (fewest := _fewest_of_a_class(data)) < SEARCH_FOLDS:
        unit = "row" if data.training.groups is None else "group"
        raise InvalidInputError(
            "the rows cannot be evaluated out of fold: the classes "
            f"{lone_labels(data.training)[:5]} have one {unit} each. Give more {unit}s of them, or pass ",
            Argument("validation"),
            ".",
            argument="evaluate_on",
        )
    rng, n = generator(seed, "folds"), len(evaluated)
    if n > MOST_EVALUATED:
        groups = None if data.training.groups is None else data.training.groups[evaluated]
        evaluated = evaluated[rows_like(np.ones(n), rng, MOST_EVALUATED, groups)[0]]
    return out_of_fold(data, evaluated, SEARCH_FOLDS, min(FINALIST_FOLDS, fewest), rng)


def _folds_asked(data: SearchData, n_folds: int) -> tuple[int, int]:
    """As many folds for the finalists as for all; raises if there are fewer rows, or groups of them."""
    groups = data.training.groups
    most, what = (len(data.training), "rows") if groups is None else (count_groups(groups), "groups")
    if n_folds > most:
        raise InvalidInputError(
            Argument("evaluate_on", n_folds),
            f" cannot split these rows: there are {most} {what}. Use fewer folds.",
        )
    return n_folds, n_folds


def _fewest_of_a_class(data: SearchData) -> int:
    """The number of rows, or of groups of rows, of the rarest class."""
    labels, groups = data.training.y, data.training.groups
    codes = np.zeros(len(labels), dtype=np.intp)
    if data.task == "classification":
        codes = np.unique(labels, return_inverse=True)[1]
    if groups is not None:
        codes = np.unique(np.stack([codes, groups]), axis=1)[0]
    return int(np.unique(codes, return_counts=True)[1].min())


def _why_not(data: SearchData, evaluator: Evaluator, n_given: int) -> str | None:
    """Why training rows cannot be evaluated beside the given ones; None if they can."""
    training, given = data.training, data.validation
    if n_given >= ENOUGH_GIVEN:
        return "there are enough of them"
    missing = set(given.columns) - set(training.columns)
    if missing and (read := evaluator.columns_read) is not None:
        missing &= read
    if missing:
        return f"the training rows do not have {', '.join(map(repr, sorted(missing)))}"
    try:
        for metric in evaluator.metrics.values():
            metric.check_columns(replace(training, sample_weight=training.own_weights), "columns")
    except InvalidInputError as error:
        return f"of the training rows {str(error).rstrip('.')}"
    if evaluator.classes is not None and not set(given.y.tolist()) <= set(evaluator.classes.tolist()):
        return "their labels are not those of the training rows"
    if _fewest_of_a_class(data) < SEARCH_FOLDS:
        return "a class has fewer training rows than there are folds"
    return None


def _warn_of_unused_columns(columns: set[str], evaluator: Evaluator) -> None:
    """Warn about columns that nothing uses: a misspelt optional column would be ignored silently."""
    used = evaluator.columns_read if columns else None
    if used is not None and (unused := sorted(columns - used)):
        told = f"neither the metric nor the decision takes the columns {unused}; they take {sorted(used)}."
        warnings.warn(told, MoewWarning, stacklevel=4)
