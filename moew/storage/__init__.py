"""Stored studies: candidates, what they predicted, and who trains them, in SQLite or PostgreSQL.

A store holds one study. `Store` forgets it with the process; `open_store` gives one that survives it
and that several processes can use at once, with the standard library's SQLite or with psycopg.
"""

from moew.storage._crew import Crew as Crew
from moew.storage._databases import check_storage as check_storage
from moew.storage._databases import storage_name as storage_name
from moew.storage._fingerprint import fingerprint as fingerprint
from moew.storage._fingerprint import unseen as unseen
from moew.storage._records import Storage as Storage
from moew.storage._records import Store as Store
from moew.storage._records import Told as Told
from moew.storage._records import TrialRecord as TrialRecord
from moew.storage._store import open_store as open_store
