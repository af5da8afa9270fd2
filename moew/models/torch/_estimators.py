"""PyTorch modules as ordinary scikit-learn estimators that can train many example weightings at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_array

from moew.data import centre_and_spread
from moew.exceptions import InvalidInputError
from moew.models.torch._base import TorchEstimator
from moew.models.torch._modules import Task
from moew.types import FloatArray, Labels, Rows


class TorchClassifier(ClassifierMixin, TorchEstimator):
    """A PyTorch module for two or more classes, trained on mini-batches with example weights.

    Parameters
    ----------
    module_factory
        Function of (n_inputs, n_outputs), or without arguments, that returns a new torch.nn.Module. The
        module maps encoded rows (b, n_inputs) to scores (b, n_outputs): one column for two classes (two are
        accepted, too), else one for each class.
    loss
        Function of (outputs, targets) that returns one loss (b,) for each row. One column of outputs is
        passed as (b,) with targets 0.0 and 1.0, several as (b, C) with integer class numbers, so PyTorch's
        own losses can be used with reduction="none". None: cross-entropy.
    optimizer
        Function of the parameters that returns a torch.optim.Optimizer, such as
        functools.partial(torch.optim.SGD, lr=0.1). None: Adam with its default settings.
    schedule
        Function of the optimizer that returns a scheduler of the learning rate, stepped at each update.
    steps
        The number of updates of the parameters.
    batch_size
        Rows in each update, drawn without replacement; None, or a number of n or more, takes all. Their
        weights are brought to mean one in each mini-batch.
    scale
        Standardise numeric columns. Data frames may hold boolean and categorical columns; missing values
        become the column's mean and a flag.
    device
        The device to compute on, such as "cpu" or "cuda"; None is a GPU where there is one. Fitted modules
        (`module_`) are on the CPU.
    models_at_once
        The most models that `fit_many` trains together; None: as many as half of the device's memory holds.
        1 trains them one after the other.
    n_threads
        PyTorch's threads on the CPU. Their number changes the last bits of sums.
    random_state
        Seed of the initial parameters. Mini-batches and dropout masks are always the same.
    """

    def decision_function(self, X: Rows) -> FloatArray:
        """Outputs: (n,) for two classes, positive for the second one; (n, C) for more."""
        out = self._outputs(X)
        if len(self.classes_) > 2:
            return out
        return out[:, 0] if out.shape[1] == 1 else np.asarray(out[:, 1] - out[:, 0])

    def predict(self, X: Rows) -> Any:
        """The class (n,) with the largest output."""
        out = self.decision_function(X)
        chosen = (out > 0).astype(int) if out.ndim == 1 else out.argmax(axis=1)
        return self.classes_[chosen]

    def predict_proba(self, X: Rows) -> FloatArray:
        """Sigmoid or softmax (n, C) of the outputs, in the order of `classes_`.

        They are probabilities where the loss is a cross-entropy; with another loss, only scores in 0 to 1.
        """
        out = self.decision_function(X)
        if out.ndim == 1:
            return np.column_stack([expit(-out), expit(out)])
        return np.asarray(softmax(out, axis=1))

    def _learn_targets(self, y: Labels) -> Any:
        """Class numbers (n,)."""
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidInputError(
                f"y holds one class only, {self.classes_.tolist()!r}; a classifier needs at least two.",
                argument="y",
            )
        return codes.astype(np.int64)

    def _task(self) -> Task:
        two = len(self.classes_) == 2
        return Task(1 if two else len(self.classes_), (2,) if two else (), True, self.loss)


class TorchRegressor(RegressorMixin, TorchEstimator):
    """A PyTorch module for regression, trained on mini-batches with example weights.

    As `TorchClassifier`; n_outputs is 1, the loss gets outputs and targets (b,) and is the squared error
    where None is given. With `scale=True` the targets are standardised for training, too; predictions are
    in the units of y.
    """

    def predict(self, X: Rows) -> FloatArray:
        """Predictions (n,) in the units of y."""
        return self._outputs(X)[:, 0] * self.target_scale_ + self.target_offset_

    def _learn_targets(self, y: Labels) -> Any:
        """Targets (n,), standardised where `scale` is set."""
        values = np.asarray(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
        self.target_offset_, self.target_scale_ = centre_and_spread("y", values) if self.scale else (0.0, 1.0)
        return (values - self.target_offset_) / self.target_scale_

    def _task(self) -> Task:
        return Task(1, (), False, self.loss)
