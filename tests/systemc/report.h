// The outcome of an inference as JSON (spec/timing.md, section 9).
#pragma once

#include <string>

#include "system.h"

namespace cim {

// One line. Counters are there if the inference came to its end.
std::string report(const System &system, const Outcome &outcome);

}  // namespace cim
