"""What scikit-learn's own checks can't ask of a model of counts.

tests/bayes/test_weights.py asks it with values that counts can have.
"""

from sklearn.utils import get_tags

from textnb import NBLogisticRegression


def expected_failures(estimator):
    """For `check_estimator` and `parametrize_with_checks`: check to reason."""
    if not get_tags(estimator).input_tags.positive_only:
        return {}
    negative = "it passes negative values, and counts have none"
    failures = dict.fromkeys(
        ["check_class_weight_classifiers", "check_decision_proba_consistency"], negative)
    if isinstance(estimator, NBLogisticRegression):
        failures |= dict.fromkeys(
            ["check_sample_weight_equivalence_on_dense_data",
             "check_sample_weight_equivalence_on_sparse_data"],
            "its five passes over the rows, in another order, end short of the optimum")
    return failures
