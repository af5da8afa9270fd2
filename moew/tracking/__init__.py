"""Log searches to trackers of experiments. The one place that knows MLflow."""

from moew.tracking._mlflow import MlflowCallback as MlflowCallback
