"""Simulated annealing, the particle swarm and differential evolution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import shifted_classes
from scipy.optimize import differential_evolution, dual_annealing
from sklearn.linear_model import LogisticRegression

from experiments.samplers import Annealing, DifferentialEvolution, Swarm
from moew import MetricSearch, WeightStudy
from moew.exceptions import InvalidInputError
from moew.samplers import Ball, BallAndBox, Box

NAMES = {"annealing": Annealing(), "swarm": Swarm(), "differential_evolution": DifferentialEvolution()}
RADIUS = 4.0
every_sampler = pytest.mark.parametrize("sampler", NAMES.values(), ids=NAMES)


def propose(sampler, domain, alphas, scores, pending=None, k=5, seed=0):
    pending = np.empty((0, domain.n_dims)) if pending is None else pending
    rng = np.random.default_rng(seed)
    return sampler.propose(alphas, scores, pending=pending, k=k, domain=domain, rng=rng)


def sphere(x):
    return float(((x - 0.7) ** 2).sum())


def rosenbrock(x):
    y = 0.8 * x + 0.2
    return float((100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2).sum())


def branin(x):
    a, b = (x[0] + 4) / 8 * 15 - 5, (x[1] + 4) / 8 * 15
    valley = (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
    return float(valley + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a) + 10)


def ackley(x):
    z = x - 0.9
    waves = np.exp(np.cos(2 * np.pi * z).mean())
    return float(20 - 20 * np.exp(-0.2 * np.sqrt((z**2).mean())) - waves + np.e)


@given(
    name=st.sampled_from(sorted(NAMES)),
    domain=st.sampled_from(
        [Ball(1, 0.5), Ball(3, 4.0), Ball(12, 2.0), Box(2, 3.0), BallAndBox(Ball(2, 4.0), Box(2, 1.0))]
    ),
    n=st.integers(0, 40),
    n_pending=st.integers(0, 6),
    k=st.integers(1, 25),
    failed=st.floats(0, 1),
    scale=st.sampled_from([0.0, 1e-200, 1.0, 1e200, 1e308]),
    seed=st.integers(0, 10**6),
)
def test_proposals_lie_in_the_domain_and_depend_on_the_set_of_what_is_known(
    name, domain, n, n_pending, k, failed, scale, seed
):
    rng = np.random.default_rng([seed, 1])
    alphas, pending = domain.sample(rng, n), domain.sample(rng, n_pending)
    scores = scale * rng.standard_normal(n).clip(-1, 1)
    scores[rng.random(n) < failed] = np.nan
    proposed = propose(NAMES[name], domain, alphas, scores, pending, k, seed)
    assert proposed.shape == (k, domain.n_dims)
    np.testing.assert_allclose(domain.project(proposed), proposed, rtol=1e-12, atol=1e-12)
    assert len(np.unique(np.concatenate([alphas, pending, proposed]), axis=0)) == n + n_pending + k
    known, waiting = rng.permutation(n), rng.permutation(n_pending)
    again = propose(NAMES[name], domain, alphas[known], scores[known], pending[waiting], k, seed)
    np.testing.assert_array_equal(proposed, again)


@every_sampler
def test_another_rng_gives_other_proposals_and_scores_are_used(sampler):
    domain = Ball(3, RADIUS)
    alphas = domain.sample(np.random.default_rng(0), 30)
    scores = -np.array([sphere(alpha) for alpha in alphas])
    first = propose(sampler, domain, alphas, scores)
    assert not np.isclose(first, propose(sampler, domain, alphas, scores, seed=1)).any()
    assert not np.array_equal(first, propose(sampler, domain, alphas, -scores))
    near = propose(sampler, domain, alphas, scores, k=300)
    assert np.mean([sphere(alpha) for alpha in near]) < 0.7 * np.mean([sphere(alpha) for alpha in alphas])


@every_sampler
def test_only_the_order_and_differences_of_scores_matter(sampler):
    domain = Ball(2, RADIUS)
    alphas = domain.sample(np.random.default_rng(0), 20)
    scores = -np.array([sphere(alpha) for alpha in alphas])
    np.testing.assert_allclose(
        propose(sampler, domain, alphas, scores), propose(sampler, domain, alphas, 64 * scores)
    )


def test_annealing_cools_and_pending_candidates_count():
    domain, rng = Ball(2, RADIUS), np.random.default_rng(0)
    alphas = 0.01 * domain.sample(rng, 10)

    def median_step(n_pending):
        moved = propose(Annealing(), domain, alphas, np.zeros(10), domain.sample(rng, n_pending), k=2000)
        return np.median(np.linalg.norm(moved, axis=1))

    steps = [median_step(n) for n in (0, 30, 300)]
    assert steps[0] > 1.5 * steps[1] > 4 * steps[2]


def test_two_particles_are_not_in_the_same_place():
    domain = Ball(1, 1.0)
    alphas = np.array([[0.5], [0.501], [-0.9], [0.1]])
    bests = Swarm(n_particles=3)._bests(alphas, apart=0.1)
    np.testing.assert_array_equal(bests, [[0.5], [-0.9], [0.1]])
    assert propose(Swarm(), domain, alphas[:2], np.array([1.0, 0.9])).shape == (5, 1)


@every_sampler
def test_a_study_does_not_depend_on_the_order_of_arrival_and_survives_failures(sampler):
    def run(rng):
        study = WeightStudy(None, Ball(3, RADIUS), sampler=sampler, n_initial=6, seed=3)
        waiting = []
        for _ in range(6):
            waiting += study.ask(6)
            rng.shuffle(waiting)
            for trial in waiting:
                if trial.number % 4 == 1:
                    study.tell(trial.number, error="it failed")
                else:
                    study.tell(trial.number, -sphere(trial.alpha))
            waiting = []
        return np.array([trial.alpha for trial in study.trials()])

    np.testing.assert_array_equal(run(np.random.default_rng(0)), run(np.random.default_rng(1)))


@every_sampler
def test_all_failed_is_a_random_start(sampler):
    domain = Ball(2, RADIUS)
    alphas = domain.sample(np.random.default_rng(0), 8)
    expected = domain.sample(np.random.default_rng(0), 5)
    np.testing.assert_array_equal(propose(sampler, domain, alphas, np.full(8, np.nan)), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_search(name):
    rows = shifted_classes(150, 3)
    search = MetricSearch.from_settings(
        LogisticRegression(),
        metric="balanced_accuracy",
        embedding="label",
        sampler=NAMES[name],
        n_candidates=15,
        batch_size=5,
        random_state=0,
    )
    search.fit(rows.X, rows.y, validation=(rows.X_val, rows.y_val))
    assert search.score(rows.X_test, rows.y_test) > 0.5
    alphas = np.array([trial.alpha for trial in search.result_.trials])
    assert len(np.unique(alphas, axis=0)) == len(alphas)


def best_of(sampler, function, d, seed, n, k):
    """The best value of a study of n candidates, k at a time."""
    study = WeightStudy(
        None,
        Ball(d, RADIUS),
        sampler=sampler,
        n_initial=k,
        alpha_zero_repeats=0,
        greater_is_better=False,
        seed=seed,
    )
    for _ in range(n // k):
        for trial in study.ask(k):
            study.tell(trial.number, function(trial.alpha))
    return study.best().value


def best_of_scipy(minimise, function, d, n, **settings):
    """The best of the first n values of SciPy's optimizer; points outside are moved to the ball's edge."""
    ball, values = Ball(d, RADIUS), []

    def objective(x):
        values.append(function(ball.project(np.asarray(x)[None])[0]))
        return values[-1]

    stop = {"callback": lambda *_, **__: len(values) >= n}
    minimise(objective, [(-RADIUS, RADIUS)] * d, **stop, **settings)
    return min(values[:n])


@pytest.mark.parametrize(
    ("function", "d"),
    [(sphere, 2), (rosenbrock, 2), (branin, 2), (ackley, 2), (sphere, 5), (rosenbrock, 5), (ackley, 5)],
)
@pytest.mark.parametrize("name", NAMES)
def test_at_the_same_budget_the_best_is_not_much_worse_than_that_of_scipy(name, function, d):
    n, seeds = 200, range(10)
    ours = np.median([best_of(NAMES[name], function, d, seed, n, 20) for seed in seeds])
    if name == "annealing":  # without gradients, which a metric does not have
        more = {"no_local_search": True, "maxiter": n}
        theirs = [best_of_scipy(dual_annealing, function, d, n, rng=seed, **more) for seed in seeds]
    else:
        more = {"popsize": 20 // d, "polish": False, "tol": 0.0, "maxiter": n}
        theirs = [best_of_scipy(differential_evolution, function, d, n, rng=seed, **more) for seed in seeds]
    random = np.median([best_of("random", function, d, seed, n, 20) for seed in seeds])
    assert ours < random
    assert ours <= 1.25 * np.median(theirs) + 0.05


def test_wrong_settings_are_refused():
    for wrong in ({"cooling": 0.0}, {"heat": -1.0}, {"step": np.nan}):
        with pytest.raises(InvalidInputError, match="must be a positive number"):
            Annealing(**wrong)
    with pytest.raises(InvalidInputError, match="n_particles must be a whole number of at least 2, got 1"):
        Swarm(n_particles=1)
    with pytest.raises(InvalidInputError, match="n_informants must be a whole number of at least 1"):
        Swarm(n_informants=0)
    with pytest.raises(InvalidInputError, match="apart is a share"):
        Swarm(apart=2.0)
    with pytest.raises(InvalidInputError, match="population must be a whole number of at least 4"):
        DifferentialEvolution(population=3)
    with pytest.raises(InvalidInputError, match="crossover is a chance"):
        DifferentialEvolution(crossover=1.5)
    with pytest.raises(InvalidInputError, match="the lower one first"):
        DifferentialEvolution(scale=(0.9, 0.3))
