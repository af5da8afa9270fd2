"""The real data, held against what is known about them and against pandas' reading of the same files."""

import hashlib

import numpy as np
import pandas as pd
import pytest

from experiments import datasets
from experiments.datasets import DataFileError, _crime, _files, _mnist, _origins, _people, _stand_ins, _wine
from moew.exceptions import InvalidInputError


@pytest.fixture
def given(real_data):
    """A function that skips the test unless these files are on this machine: tests download nothing."""

    def require(*files):
        missing = [file.name for file in files if _files.find(file) is None]
        if missing:
            pytest.skip(f"real data needed: set MOEW_DATA to a folder with {', '.join(missing)}")

    return require


def pandas_table(file, **options):
    return pd.read_csv(_files.find(file), keep_default_na=False, **options)


def assert_columns_equal(dataset, table):
    for name, column in dataset.columns.items():
        if name in table:
            np.testing.assert_array_equal(column, table[name], err_msg=name)
    for index, name in enumerate(dataset.feature_names):
        np.testing.assert_array_equal(dataset.X[:, index], table[name], err_msg=name)


def assert_rows_agree(*parts):
    for part in parts:
        n = len(part.y)
        assert part.X.shape == (n, len(part.feature_names))
        assert np.isfinite(part.X).all()
        assert {column.shape for column in part.columns.values()} <= {(n,)}


def test_mnist(given):
    given(*_mnist.FILES)
    data = datasets.load_mnist()
    assert data.train.X.shape == (60_000, 784)
    assert data.test.X.shape == (10_000, 784)
    assert data.train.X.dtype == np.float32
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    np.testing.assert_array_equal(np.bincount(data.train.y), counts)
    assert data.train.X.min() == 0
    assert data.train.X.max() == 1
    # Back to the idx file, whose usual MD5 is known from elsewhere than our table.
    pixels = np.rint(data.train.X * 255).astype(np.uint8).tobytes()
    header = np.array([0x803, 60_000, 28, 28], dtype=">i4").tobytes()
    assert hashlib.md5(header + pixels).hexdigest() == "6bbc9ace898e44ae57da46a324031adb"


def test_crime(given):
    given(*_crime.FILES)
    data = datasets.load_crime()
    assert_rows_agree(data)
    assert data.X.shape == (1994, 99)
    assert data.y.sum() == 583
    white, population = data.columns["racePctWhite"], data.columns["population"]
    np.testing.assert_allclose(np.quantile(white, [0.25, 0.5, 0.75]), [0.63, 0.85, 0.94])
    assert np.mean(data.columns["group"] <= 1) == pytest.approx(0.498, abs=5e-4)  # the share ≤ 0.84
    for group, (low, high) in enumerate([(-1, 0.63), (0.63, 0.84), (0.84, 0.94), (0.94, 1)]):
        np.testing.assert_array_equal(data.columns["group"] == group, (white > low) & (white <= high))
    assert data.columns["large"].sum() == 755 + 200 + 200  # the paper's shifted split
    assert np.mean(population > 0.02) == pytest.approx(0.443, abs=5e-4)
    documentation = _files.read_file(_crime.FILES[1]).decode()
    names = [line.split()[1] for line in documentation.splitlines() if line.startswith("@attribute")]
    assert_columns_equal(data, pandas_table(_crime.FILES[0], names=names))


def test_crime_features_can_be_chosen(given):
    given(*_crime.FILES)
    script = datasets.load_crime("script")
    assert script.X.shape == (1994, 93)
    assert {"racepctblack", "racePctWhite", "racePctAsian", "racePctHisp"} <= set(script.feature_names)
    two = datasets.load_crime(["PopDens", "medIncome"])
    np.testing.assert_array_equal(two.X, datasets.load_crime().features(["PopDens", "medIncome"]))
    for wrong in ("paper", ["OtherPerCap"], ["ViolentCrimesPerPop"], []):
        with pytest.raises(InvalidInputError, match='expected "complete", "script"'):
            datasets.load_crime(wrong)
    with pytest.raises(InvalidInputError, match="no feature 'PolicCars'"):
        script.features(["PolicCars"])


def test_wine(given):
    given(_wine.SAMPLE)
    data = datasets.load_wine()
    assert_rows_agree(data)
    assert data.X.shape == (9_315, 40)
    table = pandas_table(_wine.SAMPLE)
    assert data.feature_names == (*table.columns[3:], "points")
    assert_columns_equal(data, table)
    np.testing.assert_array_equal(np.quantile(data.columns["price"], [0.25, 0.5, 0.75]), [17, 25, 42])
    np.testing.assert_allclose(np.exp(data.y), data.columns["price"])


def test_wine_flags_come_back_from_reviews_that_have_the_words(given, tmp_path):
    given(_wine.SAMPLE)
    data = datasets.load_wine()
    words = np.array([word.replace("_", " ").upper() for word in data.feature_names[:39]])
    reviews = pd.DataFrame(
        {
            "description": ["; ".join(words[row[:39] == 1]) for row in data.X],
            "points": data.features(["points"])[:, 0].astype(int),
            "price": data.columns["price"],
        },
        index=data.columns["id"],
    )
    reviews.to_csv(tmp_path / "kaggle.csv")
    again = datasets.load_wine(csv=tmp_path / "kaggle.csv")
    np.testing.assert_array_equal(again.X, data.X)
    np.testing.assert_array_equal(again.y, data.y)
    np.testing.assert_array_equal(again.columns["id"], data.columns["id"])


KAGGLE = """,country,description,designation,points,price,title
0,Italy,"Unpriced, so left out.",Bianco,87,,A
1,France,"A ""CRISP"", food friendly white,
unoaked, with a Hint of lemon – très élégant.",,90,12.0,B
7,US,Food-friendly but plain.,,80,7,C
"""


def test_wine_from_the_csv_of_kaggle(tmp_path):
    path = tmp_path / "winemag-data-130k-v2.csv"
    path.write_text(KAGGLE, encoding="utf-8")
    data = datasets.load_wine(csv=str(path))
    flagged = [[name for name, on in zip(data.feature_names, row, strict=True) if on == 1] for row in data.X]
    assert flagged == [["crisp", "food_friendly", "hint_of", "oak", "unoaked"], []]
    np.testing.assert_array_equal(data.features(["points"])[:, 0], [90, 80])
    np.testing.assert_array_equal(data.columns["id"], [1, 7])
    np.testing.assert_array_equal(data.columns["price"], [12, 7])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", "not the columns one without a name"),
        (b"", "not the columns one without a name"),
        (b",description,points,price\n0,x,90,\n", "no row with a price"),
        (b",description,points,price\n0,x,90,cheap\n", "cheap"),
        (b",description,points,price\n0,x,90,-3\n", "a price is -3.0"),
        (b",description,points,price\n0,x,,3\n", "could not convert"),
        (b",description,points,price\n0,\xff,90,3\n", "codec can't decode"),
        (None, "No such file"),
    ],
    ids=["columns", "empty", "unpriced", "text", "negative", "no points", "encoding", "missing"],
)
def test_another_csv_is_refused(tmp_path, content, message):
    path = tmp_path / "other.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInputError, match=rf"(?s){message}.*winemag-data-130k-v2.csv as it is"):
        datasets.load_wine(csv=path)


def test_wine_without_words(given):
    given(_wine.FULL)
    data = datasets.load_wine_full()
    assert_rows_agree(data)
    assert len(data.y) == 120_975
    levels = [len(set(data.columns[name]) - {""}) for name in ("country", "variety", "taster")]
    assert levels == [42, 697, 19]
    assert_columns_equal(data, pandas_table(_wine.FULL))


def test_credit_default(given):
    given(_stand_ins.CREDIT)
    data = datasets.load_credit_default()
    assert_rows_agree(data)
    assert data.X.shape == (30_000, 12)
    large = data.columns["large"]
    assert [data.y.mean(), data.y[large].mean(), data.y[~large].mean()] == pytest.approx(
        [0.2212, 0.157, 0.283], abs=5e-4
    )
    table = pandas_table(_stand_ins.CREDIT)
    assert set(table.columns) <= set(data.columns)
    assert_columns_equal(data, table)


def test_blog(given):
    given(_stand_ins.BLOG)
    data = datasets.load_blog()
    parts = (data.train, data.valid, data.test)
    assert_rows_agree(*parts)
    assert [part.X.shape for part in parts] == [(52_397, 11), (3_503, 11), (4_121, 11)]
    assert [part.y.mean() for part in parts] == pytest.approx([0.360, 0.309, 0.289], abs=5e-4)
    np.testing.assert_allclose(np.expm1(data.test.columns["graded"]), data.test.columns["comments_next_24h"])
    table = pandas_table(_stand_ins.BLOG)
    for name, part in (("train", data.train), ("valid", data.valid), ("test", data.test)):
        assert_columns_equal(part, table[table["split"] == name])


def test_adult(given):
    given(*_people.ADULT)
    data = datasets.load_adult()
    assert_rows_agree(data.train, data.test)
    assert [len(data.train.y), len(data.test.y)] == [32_561, 16_281]
    assert [data.train.y.sum(), data.test.y.sum()] == [7_841, 3_846]  # as adult.names' 24.1 % and 23.6 %
    options = {"names": _people._ADULT_NAMES, "skipinitialspace": True}
    assert_columns_equal(data.train, pandas_table(_people.ADULT[0], **options))
    assert_columns_equal(data.test, pandas_table(_people.ADULT[1], skiprows=1, **options))


def test_compas(given):
    given(_people.COMPAS)
    data = datasets.load_compas()
    assert_rows_agree(data)
    assert len(data.y) == 7_214
    assert data.columns["analysed"].sum() == 6_172  # of ProPublica's own analysis
    table = pandas_table(_people.COMPAS, na_values={"days_b_screening_arrest": [""]})
    assert_columns_equal(data, table)
    np.testing.assert_array_equal(data.y, table["two_year_recid"])


def test_bank(given):
    given(_origins.BANK)
    data = datasets.load_bank()
    assert_rows_agree(data)
    assert (len(data.y), int(data.y.sum())) == (41_188, 4_640)
    months = data.columns["month"]
    assert (months[0], months[-1]) == (4, 12 * 2 + 10)  # May 2008 to November 2010
    assert (np.diff(months) >= 0).all()
    parts = [data.y[part].mean() for part in np.array_split(np.arange(len(data.y)), 12)]
    assert parts[0] < 0.03
    assert parts[-1] > 0.4


def test_car_fraud(given):
    given(_origins.CAR_FRAUD)
    data = datasets.load_car_fraud()
    assert_rows_agree(data)
    shares = [data.y[data.columns["year"] == year].mean() for year in (1994, 1995, 1996)]
    np.testing.assert_allclose(shares, [0.0666, 0.0579, 0.0522], atol=5e-5)


def test_weather(given):
    given(_origins.WEATHER)
    data = datasets.load_weather()
    assert_rows_agree(data)
    assert (len(data.y), round(float(data.y.mean()), 3)) == (18_159, 0.314)
    assert np.unique(data.columns["year"]).tolist() == list(range(1949, 2000))


def test_music_crowd(given):
    given(*_origins.CROWD)
    answers, songs = datasets.load_music_crowd()
    assert_rows_agree(answers, songs)
    assert (len(answers.y), len(songs.y), answers.X.shape[1]) == (2_945, 300, 124)
    assert len(np.unique(answers.columns["annotator"])) == 44
    assert len(np.unique(answers.columns["song"])) == 700
    assert 0.4 < np.mean(answers.y == answers.columns["truth"]) < 0.7  # a crowd is often wrong


def test_a_changed_copy_of_real_data_is_refused(given, monkeypatch, tmp_path):
    given(_wine.SAMPLE)
    content = _files.read_file(_wine.SAMPLE)
    (tmp_path / "wine").mkdir()
    (tmp_path / "wine" / "wine.csv").write_bytes(content.replace(b"1,15,87,1", b"1,51,87,1", 1))
    monkeypatch.setenv("MOEW_DATA", str(tmp_path))
    with pytest.raises(DataFileError, match=r"wine\.csv is not the file .* SHA-256"):
        datasets.load_wine()
