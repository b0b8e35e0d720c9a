// The element-wise operations of the GPEU, one function for every operation and choice of element types.
#pragma once

#include <cstdint>

#include "cim_isa.h"
#include "image.h"

namespace cim {

// The parameter vectors of a core, all of M elements.
struct Parameters {
    const float *mul_pos;
    const float *mul_neg;
    const std::int32_t *y_zp;
};

// dst[0:n] from a[0:n] and b[0:n], or the bits of the immediate. Operands that an operation has not are ignored.
using GpeuFunction = void (*)(void *dst, const void *a, const void *b, std::uint32_t immediate,
                              std::uint32_t n, const Parameters &parameters);

GpeuFunction gpeu_function(cim_kind kind, Element dst, Element a, Element b);

}  // namespace cim
