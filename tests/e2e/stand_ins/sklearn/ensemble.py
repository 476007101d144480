# SPDX-License-Identifier: Apache-2.0
import numpy


class GradientBoostingClassifier:
    def __init__(self, **parameters):
        self.train_score_ = [0.5]
        self.estimators_ = []

    def set_params(self, **parameters):
        pass

    def fit(self, features, labels):
        pass

    def predict_proba(self, features):
        return numpy.full((len(features), 2), 0.5)
