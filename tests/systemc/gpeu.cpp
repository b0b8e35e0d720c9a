#include "gpeu.h"

#include <cstring>

#include "numerics.h"

namespace cim {
namespace {

// What integer operations are computed in: sums and products of 8-bit elements fit 32 bits, others do not.
template <class A, class B>
using Exact = std::conditional_t<sizeof(A) == 1 && sizeof(B) == 1, std::int32_t, std::int64_t>;

struct Add {
    template <class T>
    static T of(T a, T b) { return a + b; }
};
struct Sub {
    template <class T>
    static T of(T a, T b) { return a - b; }
};
struct Mul {
    template <class T>
    static T of(T a, T b) { return a * b; }
};
// NaN if either side is; of two zeros the first operand.
struct Max {
    template <class T>
    static T of(T a, T b) { return a >= b || a != a ? a : b; }
};
struct Min {
    template <class T>
    static T of(T a, T b) { return a <= b || a != a ? a : b; }
};

template <class Op, class D, class A, class B>
void binary(void *dst, const void *a, const void *b, std::uint32_t, std::uint32_t n, const Parameters &) {
    auto *d = static_cast<D *>(dst);
    const auto *x = static_cast<const A *>(a);
    const auto *y = static_cast<const B *>(b);
    for (std::uint32_t k = 0; k < n; ++k) {
        if constexpr (std::is_same_v<D, float>)
            d[k] = Op::template of<float>(x[k], y[k]);
        else
            d[k] = assign<D>(Op::template of<Exact<A, B>>(x[k], y[k]));
    }
}

template <class Op, class D, class A>
void with_constant(void *dst, const void *a, std::uint32_t bits, std::uint32_t n) {
    auto *d = static_cast<D *>(dst);
    const auto *x = static_cast<const A *>(a);
    if constexpr (std::is_same_v<D, float>) {
        float y;
        std::memcpy(&y, &bits, sizeof y);
        for (std::uint32_t k = 0; k < n; ++k) d[k] = Op::template of<float>(x[k], y);
    } else {
        const std::int64_t y = static_cast<std::int32_t>(bits);
        for (std::uint32_t k = 0; k < n; ++k) d[k] = assign<D>(Op::template of<std::int64_t>(x[k], y));
    }
}

template <class Op, class D, class A>
void immediate(void *dst, const void *a, const void *, std::uint32_t bits, std::uint32_t n, const Parameters &) {
    with_constant<Op, D, A>(dst, a, bits, n);
}

template <class D, class A>
void relu(void *dst, const void *a, const void *, std::uint32_t, std::uint32_t n, const Parameters &) {
    with_constant<Max, D, A>(dst, a, 0, n);
}

template <class D, class A>
void mov(void *dst, const void *a, const void *, std::uint32_t, std::uint32_t n, const Parameters &) {
    auto *d = static_cast<D *>(dst);
    const auto *x = static_cast<const A *>(a);
    for (std::uint32_t k = 0; k < n; ++k) {
        if constexpr (std::is_same_v<D, float>)
            d[k] = x[k];
        else
            d[k] = assign<D>(static_cast<std::int64_t>(x[k]));
    }
}

template <class D>
void clr(void *dst, const void *, const void *, std::uint32_t, std::uint32_t n, const Parameters &) {
    std::memset(dst, 0, n * sizeof(D));
}

void lrelu(void *dst, const void *a, const void *, std::uint32_t, std::uint32_t n, const Parameters &p) {
    auto *d = static_cast<float *>(dst);
    const auto *x = static_cast<const float *>(a);
    for (std::uint32_t k = 0; k < n; ++k) d[k] = x[k] * (x[k] >= 0 ? p.mul_pos[k] : p.mul_neg[k]);
}

template <class D, class A>
void requant(void *dst, const void *a, const void *, std::uint32_t, std::uint32_t n, const Parameters &p) {
    auto *d = static_cast<D *>(dst);
    const auto *x = static_cast<const A *>(a);
    for (std::uint32_t k = 0; k < n; ++k) {
        const float factor = x[k] >= 0 ? p.mul_pos[k] : p.mul_neg[k];
        const std::int64_t rounded = rint32(static_cast<float>(x[k]) * factor);
        d[k] = assign<D>(rounded + p.y_zp[k]);
    }
}

template <class Op, class D, class A>
GpeuFunction binary_by_b(Element b) {
    if constexpr (std::is_same_v<D, float>) {
        return binary<Op, D, A, float>;
    } else {
        switch (b) {
            case Element::I8: return binary<Op, D, A, std::int8_t>;
            case Element::U8: return binary<Op, D, A, std::uint8_t>;
            default: return binary<Op, D, A, std::int32_t>;
        }
    }
}

template <class D, class A>
GpeuFunction by_kind(cim_kind kind, Element b) {
    switch (kind) {
        case CIM_GPEU_MOV: return mov<D, A>;
        case CIM_GPEU_CLR: return clr<D>;
        case CIM_GPEU_ADD: return binary_by_b<Add, D, A>(b);
        case CIM_GPEU_ADD_IMM: return immediate<Add, D, A>;
        case CIM_GPEU_SUB: return binary_by_b<Sub, D, A>(b);
        case CIM_GPEU_MUL: return binary_by_b<Mul, D, A>(b);
        case CIM_GPEU_MUL_IMM: return immediate<Mul, D, A>;
        case CIM_GPEU_MAX: return binary_by_b<Max, D, A>(b);
        case CIM_GPEU_MAX_IMM: return immediate<Max, D, A>;
        case CIM_GPEU_MIN: return binary_by_b<Min, D, A>(b);
        case CIM_GPEU_MIN_IMM: return immediate<Min, D, A>;
        case CIM_GPEU_RELU: return relu<D, A>;
        case CIM_GPEU_LRELU: return lrelu;
        case CIM_GPEU_REQUANT:
            if constexpr (!std::is_same_v<D, float>) return requant<D, A>;
            return nullptr;
        default: return nullptr;
    }
}

template <class D>
GpeuFunction by_a(cim_kind kind, Element a, Element b) {
    switch (a) {
        case Element::I8: return by_kind<D, std::int8_t>(kind, b);
        case Element::U8: return by_kind<D, std::uint8_t>(kind, b);
        default: return by_kind<D, std::int32_t>(kind, b);
    }
}

}  // namespace

GpeuFunction gpeu_function(cim_kind kind, Element dst, Element a, Element b) {
    switch (dst) {
        case Element::I8: return by_a<std::int8_t>(kind, a, b);
        case Element::U8: return by_a<std::uint8_t>(kind, a, b);
        case Element::I32: return by_a<std::int32_t>(kind, a, b);
        case Element::F32: return by_kind<float, float>(kind, b);
    }
    return nullptr;
}

}  // namespace cim
