# SPDX-License-Identifier: Apache-2.0
"""Callbacks that mark what a framework does: one module per framework, which imports it.

    from headroom.callbacks.lightning import HeadroomCallback      # also huggingface, keras, lightgbm, xgboost, optuna
    from headroom.callbacks.torch import wrap_loader
"""
