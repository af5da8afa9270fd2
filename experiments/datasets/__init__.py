"""Real data for the experiments and examples, as NumPy arrays.

A file is looked for in the folder named by the environment variable `MOEW_DATA`, then in the user's cache
(`$XDG_CACHE_HOME/moew` or `~/.cache/moew`), then at its publisher, where that needs no login. Its content is
compared with a known SHA-256 every time; compressed or not makes no difference.

    wine = load_wine()
    search.fit(wine.X, wine.y, columns=wine.columns)
"""

from experiments.datasets._crime import load_crime as load_crime
from experiments.datasets._figure_1 import draw_figure_1 as draw_figure_1
from experiments.datasets._figure_1 import figure_1_probability as figure_1_probability
from experiments.datasets._files import DataFileError as DataFileError
from experiments.datasets._mnist import load_mnist as load_mnist
from experiments.datasets._origins import load_bank as load_bank
from experiments.datasets._origins import load_car_fraud as load_car_fraud
from experiments.datasets._origins import load_music_crowd as load_music_crowd
from experiments.datasets._origins import load_weather as load_weather
from experiments.datasets._people import load_adult as load_adult
from experiments.datasets._people import load_compas as load_compas
from experiments.datasets._stand_ins import load_blog as load_blog
from experiments.datasets._stand_ins import load_credit_default as load_credit_default
from experiments.datasets._tables import Dataset as Dataset
from experiments.datasets._tables import TrainTest as TrainTest
from experiments.datasets._tables import TrainValidTest as TrainValidTest
from experiments.datasets._wine import load_wine as load_wine
from experiments.datasets._wine import load_wine_full as load_wine_full
