"""Fitted models that tests only read."""

import pytest

from tests.classifier.models import NEWS, SPAM
from textnb import TextClassifier


@pytest.fixture(scope="session")
def spam():
    return TextClassifier().fit(SPAM)


@pytest.fixture(scope="session")
def news():
    return TextClassifier().fit(NEWS)
