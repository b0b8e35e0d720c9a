// Conversions between numbers as spec/machine.md defines them, "Numeric modes".
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cim {

// An exact integer, assigned to a buffer element: 8 bits saturate, int32 wraps.
template <class D, class Exact>
inline D assign(Exact value) {
    if constexpr (sizeof(D) == 1) {
        constexpr Exact low = std::numeric_limits<D>::min(), high = std::numeric_limits<D>::max();
        return static_cast<D>(value < low ? low : value > high ? high : value);
    } else {
        return static_cast<D>(static_cast<std::uint32_t>(value));
    }
}

inline std::int32_t rint32(float x) {
    constexpr float limit = 2147483648.0f;
    if (!(x == x)) return 0;
    if (x >= limit) return std::numeric_limits<std::int32_t>::max();
    if (x < -limit) return std::numeric_limits<std::int32_t>::min();
    return static_cast<std::int32_t>(std::nearbyintf(x));
}

}  // namespace cim
