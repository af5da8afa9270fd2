"""The run folder of `moew fit`, whose loading executes no code from it.

`load_run(folder)` gives back the model, the decision rule and the weight function; `predict` and `weights`
take rows as the run's schema reads them.
"""

from moew.cli._models import built_in_model as built_in_model
from moew.cli.runs._finished import FinishedRun as FinishedRun
from moew.cli.runs._finished import load_run as load_run
from moew.cli.runs._folder import RunFolder as RunFolder
from moew.cli.runs._schema import Schema as Schema
from moew.cli.runs._tables import read_table as read_table
