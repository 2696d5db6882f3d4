"""scikit-learn's own checks of an estimator of this kind: every one passes, or is in the table with its reason."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from small import QUICK

from softspike import SparseCoder

# name of a check → why SparseCoder does not pass it
EXCLUDED: dict[str, str] = {}

SETTINGS = {"max_steps": 3, "batch_size": 32, "n_samples": QUICK["n_samples"], "random_state": 0}


@pytest.mark.usefixtures("one_refit")
@pytest.mark.filterwarnings("ignore:all 3 steps of the learning-rate schedule")
@parametrize_with_checks(
    [SparseCoder(**SETTINGS), SparseCoder(**SETTINGS, method="thresholded-laplacian")],
    expected_failed_checks=lambda estimator: EXCLUDED,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
