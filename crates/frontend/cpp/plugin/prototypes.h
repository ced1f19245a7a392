// What prototypes say of functions without a body. Debug information describes
// those only with optimisation on, so it is taken from clang's own tree.
#pragma once

#include "../module.h"

namespace caulk {

/// Filled while clang reads the unit, before its module is lowered.
const Prototypes &prototypes();

} // namespace caulk
