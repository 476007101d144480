// SPDX-License-Identifier: Apache-2.0
// CLI11's classes, by name: it is the largest header here, and only what declares options or asks for them reads it.
#pragma once

namespace CLI {

class App;
class Validator;

}  // namespace CLI
