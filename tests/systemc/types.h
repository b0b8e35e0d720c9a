// Cycles and simulated time: one unit of sc_time is one cycle of the bus clock.
#pragma once

#include <cstdint>
#include <systemc>

namespace cim {

using Cycle = std::uint64_t;

inline sc_core::sc_time to_time(Cycle cycles) { return sc_core::sc_time::from_value(cycles); }
inline Cycle to_cycles(const sc_core::sc_time &time) { return time.value(); }
// sc_time_stamp() without the call.
inline Cycle now() { return sc_core::sc_get_curr_simcontext()->time_stamp().value(); }

inline std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0); }

}  // namespace cim
