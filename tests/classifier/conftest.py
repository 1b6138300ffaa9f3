"""Fitted models that tests only read."""

import pytest

from tests.classifier import topics
from tests.classifier.models import NEWS, SPAM
from textnb import TextClassifier


@pytest.fixture(scope="session")
def spam():
    return TextClassifier().fit(SPAM)


@pytest.fixture(scope="session")
def news():
    return TextClassifier().fit(NEWS)


@pytest.fixture(scope="session")
def listed():
    return TextClassifier().fit(topics.NEWS)
