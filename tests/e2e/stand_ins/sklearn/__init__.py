# SPDX-License-Identifier: Apache-2.0
"""What examples/windows/train_window.py takes of scikit-learn, without its second of a core for each import: it learns nothing."""
