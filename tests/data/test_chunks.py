"""Rows in chunks: every kind of source, encoders learned from chunks."""

import sys
from itertools import pairwise

import jax
import numpy as np
import pandas as pd
import pyarrow
import pytest
from problems import mixed_frame, shifted_classes
from pyarrow.parquet import ParquetFile
from scipy.sparse import coo_array
from sklearn.linear_model import LogisticRegression

from moew import MetricSearch
from moew.data import (
    iter_chunks,
    iter_rows,
)
from moew.embedding import AutoencoderEmbedding
from moew.exceptions import InvalidInputError

FRAME, LABELS = mixed_frame(200)
ARRAY = np.random.default_rng(0).normal(size=(103, 4)).astype(np.float32)
TARGET = np.arange(103) % 3


@pytest.fixture(scope="module", autouse=True)
def quick_compilation():
    """Several shapes are compiled here, and each is run for a moment."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def cut(X, y, ends):
    """Chunks of a frame or an array, cut before the rows `ends`."""
    borders = [0, *sorted(ends), len(y)]
    rows = [slice(a, b) for a, b in pairwise(borders)]
    return [(X.iloc[r] if hasattr(X, "iloc") else X[r], y[r]) for r in rows]


def together(chunks):
    chunks = list(chunks)
    return np.concatenate([np.asarray(X) for X, _ in chunks]), np.concatenate([y for _, y in chunks])


@pytest.fixture
def array_sources(tmp_path):
    joined = np.column_stack([ARRAY, TARGET.astype(np.float32)])
    np.save(tmp_path / "joined.npy", joined)
    np.save(tmp_path / "X.npy", ARRAY)
    np.save(tmp_path / "y.npy", TARGET)
    frame = pd.DataFrame(joined, columns=[*"abcd", "target"])
    (tmp_path / "folder").mkdir()
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=40)
    frame[:50].to_parquet(tmp_path / "folder" / "1.parquet")
    frame[50:].to_parquet(tmp_path / "folder" / "2.parquet")
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    return {
        "array": (joined, -1),
        "pair": ((ARRAY, TARGET), None),
        "frame": (frame, "target"),
        "npy": (tmp_path / "joined.npy", 4),
        "npy pair": ((tmp_path / "X.npy", str(tmp_path / "y.npy")), None),
        "memmap": ((mapped, TARGET), None),
        "view of a memmap": ((np.asarray(mapped)[:], TARGET.tolist()), None),
        "parquet": (tmp_path / "rows.parquet", "target"),
        "Arrow table": (pyarrow.Table.from_pandas(frame), "target"),
        "Arrow batches": (lambda: ParquetFile(tmp_path / "rows.parquet").iter_batches(), "target"),
        "folder": (str(tmp_path / "folder"), "target"),
        "frames": ([frame[:90], frame[90:]], "target"),
        "iterator of pairs": (iter([(ARRAY[:7], TARGET[:7]), (ARRAY[7:], TARGET[7:])]), None),
        "function": (lambda: iter([frame[:60], frame[60:60], frame[60:]]), "target"),
    }


def test_every_source_gives_the_same_rows(array_sources):
    for name, (source, label) in array_sources.items():
        chunks = list(iter_chunks(source, label=label, chunk_rows=25))
        assert 0 < max(len(y) for _, y in chunks) <= 25, name
        assert min(len(y) for _, y in chunks) > 0, name
        X, y = together(chunks)
        np.testing.assert_array_equal(X, ARRAY, err_msg=name)
        np.testing.assert_array_equal(y, TARGET, err_msg=name)


def test_chunks_of_a_memory_map_are_copies_and_leave_it_as_it_was(tmp_path):
    for mode in ("r", "r+", "c"):
        np.save(tmp_path / "X.npy", ARRAY)
        mapped = np.load(tmp_path / "X.npy", mmap_mode=mode)
        expected = ARRAY.copy()
        if mode != "r":
            mapped[3, 1] = expected[3, 1] = 42
        first, *_ = list(iter_chunks((mapped, TARGET), chunk_rows=50))
        assert not np.shares_memory(first.X, mapped)
        np.testing.assert_array_equal(mapped, expected)


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        (ARRAY, {}, "come without labels"),
        (ARRAY, {"label": "a"}, "number below its 4 columns"),
        (ARRAY, {"label": 4}, "number below its 4 columns"),
        (FRAME, {"label": "nothing"}, "no column 'nothing'"),
        ((ARRAY, TARGET), {"label": 0}, "one too many"),
        ((ARRAY, TARGET[:5]), {}, "103 rows and y has 5"),
        ((ARRAY, None), {}, "103 rows and y has none"),
        ((TARGET, TARGET), {}, "two dimensions"),
        ([TARGET], {}, "must give data frames"),
        (17, {}, "got int"),
        ((ARRAY, TARGET), {"chunk_rows": 0}, "chunk_rows"),
        ((ARRAY, TARGET), {"chunk_rows": 2.5}, "chunk_rows"),
        ("no-such-file.parquet", {"label": "y"}, "cannot be read"),
    ],
)
def test_sources_that_cannot_be_read_are_refused(source, settings, message):
    with pytest.raises(InvalidInputError, match=message):
        list(iter_chunks(source, **settings))


def test_parquet_row_groups_that_were_read_do_not_stay_in_memory(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200_000, 10)), columns=[*"abcdefghij"])
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=10_000)  # 16 MB in groups of 0.8 MB
    before = pyarrow.total_allocated_bytes()
    held = [
        pyarrow.total_allocated_bytes() - before
        for _ in iter_chunks(tmp_path / "rows.parquet", label="j", chunk_rows=10_000)
    ]
    assert len(held) == 20
    assert max(held) < 1e7


def test_empty_folders_and_missing_packages_are_reported(tmp_path, monkeypatch):
    with pytest.raises(InvalidInputError, match=r"no \*.parquet files"):
        list(iter_chunks(tmp_path, label="y"))
    FRAME.to_parquet(tmp_path / "rows.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InvalidInputError, match=r"pip install 'moew\[parquet\]'"):
        list(iter_chunks(tmp_path / "rows.parquet", label="kind"))


def test_example_weights_of_chunks_are_those_of_all_rows():
    rows = shifted_classes(120)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        embedding=AutoencoderEmbedding(steps=20),
        n_candidates=2,
        batch_size=2,
        random_state=0,
    ).fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    whole = search.example_weights(rows.X_test, rows.y_test)
    for chunk_rows in (1, 100, 10_000):
        parts = list(search.iter_example_weights((rows.X_test, rows.y_test), chunk_rows=chunk_rows))
        assert len(parts) == -(-len(whole) // chunk_rows)
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)
    with_label = np.column_stack([rows.X_test, rows.y_test])
    by_column = search.iter_example_weights(with_label, label=-1)
    np.testing.assert_allclose(np.concatenate(list(by_column)), whole, rtol=1e-12)
    embedding = search.weight_function_.embedding
    Z = np.concatenate(
        [embedding.transform(X, y) for X, y in iter_chunks((rows.X_test, rows.y_test), chunk_rows=99)]
    )
    np.testing.assert_allclose(Z, embedding.transform(rows.X_test, rows.y_test), rtol=1e-9, atol=1e-12)


def assert_same_columns(got, expected):
    for a, b in zip(got, expected, strict=True):
        assert (a.kind, a.levels, a.flag_missing) == (b.kind, b.levels, b.flag_missing)
        np.testing.assert_allclose(
            [a.offset, a.scale, a.fill], [b.offset, b.scale, b.fill], rtol=1e-10, atol=1e-12
        )


def test_files_that_are_damaged_anywhere_are_refused(tmp_path):
    rng, numbers = np.random.default_rng(0), np.random.default_rng(1).normal(size=(50, 2))
    pd.DataFrame(numbers, columns=["a", "y"]).to_parquet(tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", numbers)
    for name, label in (("rows.parquet", "y"), ("rows.npy", 1)):
        path, refused = tmp_path / name, 0
        whole = path.read_bytes()
        for where in rng.integers(len(whole) if name.endswith("parquet") else 120, size=100):
            path.write_bytes(whole[:where] + b"\x00}" + whole[where + 2 :])
            try:
                list(iter_chunks(path, label=label, chunk_rows=20))
            except InvalidInputError as error:
                assert name in str(error) or "column" in str(error)
                refused += 1
        assert refused > 20


def test_a_single_number_is_no_source():
    with pytest.raises(InvalidInputError, match="rows come from"):
        list(iter_chunks(np.array(2)))


def test_rows_without_labels_come_from_every_kind_of_source(tmp_path):
    frame = pd.DataFrame(ARRAY, columns=[*"abcd"])
    np.save(tmp_path / "X.npy", ARRAY)
    frame.to_parquet(tmp_path / "X.parquet", row_group_size=50)
    for source in (
        ARRAY,
        frame,
        [frame[:7], frame[7:7], frame[7:]],
        lambda: iter([ARRAY[:1], ARRAY[1:]]),
        tmp_path / "X.npy",
        tmp_path / "X.parquet",
        coo_array(ARRAY),
    ):
        chunks = list(iter_rows(source, chunk_rows=33))
        assert all(0 < chunk.shape[0] <= 33 for chunk in chunks)
        found = [chunk.toarray() if hasattr(chunk, "toarray") else np.asarray(chunk) for chunk in chunks]
        np.testing.assert_array_equal(np.concatenate(found), ARRAY)
        assert sum(chunk.shape[0] for chunk in iter_rows(source, chunk_rows=2**70)) == len(ARRAY)


def test_rows_without_labels_that_cannot_be_read_are_refused(tmp_path):
    np.save(tmp_path / "deep.npy", np.ones((2, 3, 4)))
    for wrong, message in (
        ((ARRAY, TARGET), "pair came"),
        ("nothing.npy", "cannot be mapped"),
        ("rows.csv", r"pandas\.read_csv"),
        (tmp_path / "deep.npy", "two dimensions"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            list(iter_rows(wrong))
