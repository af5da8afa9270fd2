"""Real data for the experiments and examples, as NumPy arrays.

A file is looked for in the folder named by the environment variable `MOEW_DATA`, then in the user's cache
(`$XDG_CACHE_HOME/moew` or `~/.cache/moew`), then at its publisher, where that needs no login. Its content is
compared with a known SHA-256 every time; compressed or not makes no difference.

    wine = load_wine()
    search.fit(wine.X, wine.y, metadata=wine.columns)
"""

from moew.datasets._crime import load_crime as load_crime
from moew.datasets._figure_1 import draw_figure_1 as draw_figure_1
from moew.datasets._figure_1 import figure_1_probability as figure_1_probability
from moew.datasets._mnist import load_mnist as load_mnist
from moew.datasets._people import load_adult as load_adult
from moew.datasets._people import load_compas as load_compas
from moew.datasets._stand_ins import load_blog as load_blog
from moew.datasets._stand_ins import load_credit_default as load_credit_default
from moew.datasets._tables import Dataset as Dataset
from moew.datasets._tables import TrainTest as TrainTest
from moew.datasets._tables import TrainValidTest as TrainValidTest
from moew.datasets._wine import load_wine as load_wine
from moew.datasets._wine import load_wine_full as load_wine_full
