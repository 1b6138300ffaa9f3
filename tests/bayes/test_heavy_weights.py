"""The linear model where rows or classes weigh much more than others, and much less.

The oracle is a trust-region method on the objective, and the bound that its last gradient proves.
"""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from tests.bayes.test_linear_solver import solve, some_rows
from textnb import NBLinear, NBLogisticRegression
from textnb.bayes import linear_solver
from textnb.bayes.labels import Labels
from textnb.bayes.learned import WarmStart
from textnb.bayes.linear import learn_and_calibrate
from textnb.bayes.linear_solver import LinearSolver
from textnb.bayes.solver_rows import SolverRows
from textnb.runtime.native import SOLVER, usable

WEIGHTS = (1e-3, 1e-2, 0.1, 10.0, 1e2, 1e3, 1e4, 1e5)
LOSSES = ("hinge", "log")


@pytest.fixture(params=["as the size decides", "descent first"], autouse=True)
def _solvers(request, monkeypatch):
    if request.param == "descent first":
        if usable(SOLVER).kernel is None:
            pytest.skip("the solver is not compiled")
        monkeypatch.setattr(linear_solver, "_MIN_VALUES", 0)


class Objective:
    """``|v|² / 2 + bias² / 2 + Σ cost · loss`` of rows times a scale; the bias is last in v."""

    def __init__(self, rows, positive, cost, loss, scale=1.0):
        self.rows = np.column_stack([rows.toarray() * scale, np.ones(rows.shape[0])])
        self.y, self.cost, self.loss = np.where(positive, 1.0, -1.0), cost, loss

    def value(self, v):
        margins = self.y * (self.rows @ v)
        losses = (np.maximum(1 - margins, 0) ** 2 if self.loss == "hinge"
                  else np.logaddexp(0, -margins))
        return 0.5 * v @ v + self.cost @ losses

    def gradient(self, v):
        margins = self.y * (self.rows @ v)
        slopes = -2 * np.maximum(1 - margins, 0) if self.loss == "hinge" else -expit(-margins)
        return v + self.rows.T @ (self.cost * slopes * self.y)

    def hessian(self, v):
        margins = self.y * (self.rows @ v)
        bends = 2.0 * (margins < 1) if self.loss == "hinge" else expit(margins) * expit(-margins)
        return np.eye(len(v)) + self.rows.T @ ((self.cost * bends)[:, None] * self.rows)

    def lowest(self):
        """Below every value: the objective bends by 1, or more, in every direction."""
        found = minimize(self.value, np.zeros(self.rows.shape[1]), jac=self.gradient,
                         hess=self.hessian, method="trust-exact", options={"gtol": 1e-6}).x
        gradient = self.gradient(found)
        lowest = self.value(found) - 0.5 * gradient @ gradient
        assert lowest == pytest.approx(self.value(found), rel=1e-6)
        return lowest


def assert_solved(objective, v, most=1.1):
    assert objective.value(v) <= most * objective.lowest()


def some_texts(seed=0, n=250):
    """Counts of words that tell the classes, of which one is rare, and some wrong labels."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.2
    wrong = labels ^ (rng.random(n) < 0.05)
    rates = rng.gamma(0.3, 1.0, (2, 60))
    return sp.csr_array(rng.poisson(rates[wrong.astype(int)] * 0.5)), np.where(labels, "b", "a")


def sample_weights(kind, n):
    rng = np.random.default_rng(1)
    return {"spread": 10 ** rng.uniform(-3, 5, n), "all heavy": np.full(n, 1e5),
            "some heavy": np.where(rng.random(n) < 0.02, 1e5, 1.0),
            "most heavy": np.where(rng.random(n) < 0.6, 1e5, 1.0),
            "some light": np.where(rng.random(n) < 0.1, 1e-3, 1.0),
            "all light": np.full(n, 1e-3)}[kind]


def fitted(model, counts, labels, weight=None):
    """The model's v and bias, and its objective; where a solver did not end, a warning fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(counts, labels, weight)
    cost = np.ones(len(labels)) if weight is None else weight
    cost = cost * np.where(labels == "b", (model.class_weight or {}).get("b", 1.0), 1.0)
    objective = Objective(model.feature_map_.sparse(counts), labels == "b", cost, model.loss)
    return objective, np.append(model.coef_[0], model.intercept_)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_class_of_any_weight_has_the_loss_of_the_optimum(loss, weight):
    for label in ("a", "b"):
        counts, labels = some_texts()
        if label == "a":
            labels = np.where(labels == "a", "b", "a")
        assert_solved(*fitted(
            NBLinear(power=0.0, loss=loss, class_weight={"b": weight}), counts, labels))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [
    "spread", "all heavy", "some heavy", "most heavy", "some light", "all light"])
def test_rows_of_any_weight_have_the_loss_of_the_optimum(loss, kind):
    counts, labels = some_texts()
    weight = sample_weights(kind, len(labels))
    assert_solved(*fitted(NBLinear(power=0.0, loss=loss), counts, labels, weight))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_a_tight_tolerance_is_the_optimum_whatever_rows_weigh(loss, weight):
    counts, labels = some_texts(1)
    model = NBLinear(power=0.0, loss=loss, class_weight={"b": weight}, tol=1e-5, max_iter=1000)
    assert_solved(*fitted(model, counts, labels), most=1 + 1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_scales_and_features_of_one_row_change_nothing(loss, weight):
    rows, positive, scale = some_rows(2, n_rows=80, n_features=60)
    cost = np.where(positive, weight, 1.0)
    found = solve(LinearSolver(loss), SolverRows.of(rows, loss), positive, cost, scale)
    assert found.converged
    assert_solved(Objective(rows, positive, cost, loss, scale),
                  np.append(found.weights / scale, found.intercept))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_labels_of_any_weight_have_the_loss_of_the_optimum(loss, weight):
    counts, labels = some_texts(2)
    rng = np.random.default_rng(0)
    rows = np.append(np.flatnonzero(labels == "b"), np.flatnonzero(rng.random(len(labels)) < 0.1))
    codes = np.repeat([0, 1], [(labels == "b").sum(), len(rows) - (labels == "b").sum()])
    lists = Labels(np.array(["b", "c"]), rows, codes, len(labels), "sigmoid")
    model = NBLinear(power=0.0, loss=loss, held_out=0.0, class_weight={"b": weight, "c": weight})
    of_row = np.where(rng.random(len(labels)) < 0.5, 3.0, 1.0)
    form = learn_and_calibrate(model, counts, lists, of_row).form
    for k in range(2):
        cost = of_row * np.where(lists.has(k), weight, 1.0)
        assert_solved(Objective(form.features.sparse(counts), lists.has(k), cost, loss),
                      np.append(form.weights[:, k], form.intercept[k]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_weights_of_another_problem_are_a_start_and_no_answer(loss, weight):
    counts, labels = some_texts(3)
    model = NBLinear(power=0.0, loss=loss, held_out=0.0, class_weight={"b": weight})
    classes = Labels.of_classes(labels)
    of_even = NBLinear(power=0.0, loss=loss, held_out=0.0).learn_rows(counts, classes)
    start = WarmStart(of_even.form, np.arange(counts.shape[1]))
    cost = np.where(labels == "b", weight, 1.0)
    for counted in (None, of_even.counts):
        form = model.learn_rows(counts, classes, start=start, statistics=counted).form
        assert_solved(Objective(form.features.sparse(counts), labels == "b", cost, loss),
                      np.append(form.weights[:, 1], form.intercept[1]))


@pytest.mark.parametrize("_solvers", ["descent first"], indirect=True)
def test_descent_solves_heavy_rows_alone(monkeypatch):
    monkeypatch.setattr(linear_solver, "_newton", None)
    counts, labels = some_texts()
    objective, v = fitted(NBLinear(power=0.0, C=1e3), counts, labels)
    objective.cost = objective.cost * 1e3
    assert_solved(objective, v)


def test_conjugate_gradients_that_end_too_soon_are_no_convergence(monkeypatch):
    monkeypatch.setattr(linear_solver, "_MAX_PRODUCTS", 1)
    counts, labels = some_texts()
    with pytest.warns(ConvergenceWarning, match="smaller weights of rows and classes"):
        NBLinear(loss="log", class_weight={"b": 1e5}).fit(counts, labels)


def test_a_model_of_held_out_rows_that_is_not_solved_is_told(monkeypatch):
    solve = LinearSolver._finish

    def unsolved(self, problem, found, duals, point):
        solution = solve(self, problem, found, duals, point)
        object.__setattr__(solution, "converged", duals is None)
        return solution

    monkeypatch.setattr(LinearSolver, "_finish", unsolved)
    counts, labels = some_texts()
    with pytest.warns(ConvergenceWarning, match="failed to converge"):
        learn_and_calibrate(NBLinear(), counts, Labels.of_classes(labels))


def test_the_other_linear_model_tells_of_passes_that_are_too_few():
    counts, labels = some_texts()
    with pytest.warns(ConvergenceWarning, match="failed to converge"):
        NBLogisticRegression(class_weight={"b": 1e5}, tol=1e-6, max_iter=5).fit(counts, labels)
