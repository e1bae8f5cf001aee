"""Estimators for scikit-learn without a learning rate.

========================  ==========================================================
`Classifier`              logistic and softmax regression, or a network
`Regressor`               ridge regression, or a network
========================  ==========================================================

They follow the conventions of scikit-learn: pipelines, searches, cross-validation, sparse matrices, data frames,
``partial_fit`` and ``sample_weight``. Install them with ``pip install strust[sklearn]``.
"""

from __future__ import annotations

try:
    from strust.sklearn._models import Classifier, Regressor
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("scipy", "sklearn"):
        raise
    raise ImportError("strust.sklearn needs scikit-learn: pip install strust[sklearn]") from error

__all__ = ["Classifier", "Regressor"]
