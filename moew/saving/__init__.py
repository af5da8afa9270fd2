"""Fitted models in one file, whose loading executes no code; for saved searches and run folders."""

from moew.saving._files import read_files as read_files
from moew.saving._files import reading as reading
from moew.saving._files import using as using
from moew.saving._files import versions as versions
from moew.saving._files import warn_of_other_versions as warn_of_other_versions
from moew.saving._files import write_files as write_files
from moew.saving._model_files import import_skops as import_skops
from moew.saving._model_files import load_model as load_model
from moew.saving._model_files import needs_trust as needs_trust
from moew.saving._model_files import pack_model as pack_model
