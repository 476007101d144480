// SPDX-License-Identifier: Apache-2.0
// Nothing: the headers that are precompiled need a target, and a target a source.
