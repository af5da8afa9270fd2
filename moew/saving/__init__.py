"""Fitted models in files, whose loading executes no code; for run folders and saved searches."""

from moew.saving._files import check_unpacked_size as check_unpacked_size
from moew.saving._files import in_words as in_words
from moew.saving._files import reading as reading
from moew.saving._files import using as using
from moew.saving._files import versions as versions
from moew.saving._files import warn_of_other_versions as warn_of_other_versions
from moew.saving._model_files import MODEL as MODEL
from moew.saving._model_files import UNWEIGHTED as UNWEIGHTED
from moew.saving._model_files import import_skops as import_skops
from moew.saving._model_files import is_model_file as is_model_file
from moew.saving._model_files import load_model as load_model
from moew.saving._model_files import model_files as model_files
from moew.saving._model_files import needs_trust as needs_trust
from moew.saving._model_files import save_model as save_model
