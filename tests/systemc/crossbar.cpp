#include "crossbar.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "numerics.h"

namespace cim {
namespace {

constexpr std::uint32_t LANES = 8;  // int32 in a vector

}  // namespace

Crossbar::Crossbar(const Image &image, const CoreImage &core, std::vector<std::int32_t> offset,
                   std::vector<float> adc_mul)
    : mode_(image.mode), ifm_(image.ifm), rows_(core.rows), columns_(core.columns),
      offset_(std::move(offset)), adc_mul_(std::move(adc_mul)) {
    const std::size_t count = std::size_t{rows_} * columns_;
    const std::size_t cell = mode_ == Mode::F32 ? sizeof(float) : sizeof(std::int16_t);
    if (core.weights.size() != count * cell) throw ImageError("weights must be rows x columns");
    if (mode_ == Mode::F32) {
        weights_.resize(count);
        std::memcpy(weights_.data(), core.weights.data(), core.weights.size());
        return;
    }
    cells_.resize(count);
    std::memcpy(cells_.data(), core.weights.data(), core.weights.size());
    pack(cells_.data());
}

void Crossbar::pack(const std::int16_t *cells) {
    const std::uint32_t pairs = (rows_ + 1) / 2;
    stride_ = (columns_ + LANES - 1) / LANES * LANES;
    packed_.assign(std::size_t{pairs} * stride_ * 2, 0);
    input_.assign(pairs * 2, 0);
    sums_.assign(stride_, 0);
    std::vector<std::int64_t> largest(columns_, 0);
    for (std::uint32_t r = 0; r < rows_; ++r)
        for (std::uint32_t c = 0; c < columns_; ++c) {
            const std::int16_t value = cells[std::size_t{r} * columns_ + c];
            packed_[(std::size_t{r / 2} * stride_ + c) * 2 + r % 2] = value;
            largest[c] += 255 * std::abs(std::int64_t{value});
        }
    for (std::uint32_t c = 0; c < columns_; ++c)
        if (largest[c] + std::abs(std::int64_t{offset_[c]}) > std::numeric_limits<std::int32_t>::max())
            wide_ = true;
}

void Crossbar::load_input(const void *ib) {
    if (ifm_ == Element::U8)
        std::copy_n(static_cast<const std::uint8_t *>(ib), rows_, input_.begin());
    else
        std::copy_n(static_cast<const std::int8_t *>(ib), rows_, input_.begin());
}

// sums_ = cells times input, modulo 2^32.
void Crossbar::sum_pairs() {
    const std::uint32_t pairs = (rows_ + 1) / 2;
#ifdef __AVX2__
    constexpr std::uint32_t BLOCK = 4;
    for (std::uint32_t c = 0; c < stride_; c += BLOCK * LANES) {
        const std::uint32_t vectors = std::min(BLOCK, (stride_ - c) / LANES);
        __m256i sum[BLOCK] = {};
        for (std::uint32_t p = 0; p < pairs; ++p) {
            std::int32_t both;
            std::memcpy(&both, &input_[2 * p], sizeof both);
            const __m256i x = _mm256_set1_epi32(both);
            const auto *w = reinterpret_cast<const __m256i *>(&packed_[(std::size_t{p} * stride_ + c) * 2]);
            if (vectors == BLOCK) {
                for (std::uint32_t v = 0; v < BLOCK; ++v)
                    sum[v] = _mm256_add_epi32(sum[v], _mm256_madd_epi16(x, _mm256_loadu_si256(w + v)));
            } else {
                for (std::uint32_t v = 0; v < vectors; ++v)
                    sum[v] = _mm256_add_epi32(sum[v], _mm256_madd_epi16(x, _mm256_loadu_si256(w + v)));
            }
        }
        for (std::uint32_t v = 0; v < vectors; ++v)
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(&sums_[c + v * LANES]), sum[v]);
    }
#else
    std::fill(sums_.begin(), sums_.end(), 0);
    for (std::uint32_t p = 0; p < pairs; ++p) {
        const std::int32_t first = input_[2 * p], second = input_[2 * p + 1];
        const std::int16_t *w = &packed_[std::size_t{p} * stride_ * 2];
        for (std::uint32_t c = 0; c < stride_; ++c) {
            const auto sum = static_cast<std::uint32_t>(first * w[2 * c] + second * w[2 * c + 1]);
            sums_[c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums_[c]) + sum);
        }
    }
#endif
}

void Crossbar::digitize(std::int8_t *ob) const {
    // Copies of the members: `ob`, of bytes, might overlap them for all that the compiler knows.
    const std::uint32_t columns = columns_;
    const std::int32_t *sums = sums_.data(), *offset = offset_.data();
    const float *adc_mul = adc_mul_.data();
    for (std::uint32_t c = 0; c < columns; ++c) {
        const float product = static_cast<float>(sums[c] + offset[c]) * adc_mul[c];
        // Within the range of int8 the conversion is exact, so it may come before the rounding; NaN gives 0.
        const float low = product < -128.0f ? -128.0f : product;
        const float bounded = low > 127.0f ? 127.0f : low;
        const float number = bounded == bounded ? bounded : 0.0f;
        ob[c] = static_cast<std::int8_t>(static_cast<std::int32_t>(std::nearbyintf(number)));
    }
}

void Crossbar::digitize_exactly(std::int8_t *ob) const {
    for (std::uint32_t c = 0; c < columns_; ++c) {
        std::int64_t sum = offset_[c];
        for (std::uint32_t r = 0; r < rows_; ++r)
            sum += std::int64_t{input_[r]} * cells_[std::size_t{r} * columns_ + c];
        ob[c] = assign<std::int8_t>(std::int64_t{rint32(static_cast<float>(sum) * adc_mul_[c])});
    }
}

void Crossbar::multiply_floats(const float *x, float *y) const {
    std::fill_n(y, columns_, 0.0f);
    for (std::uint32_t r = 0; r < rows_; ++r) {
        const float *row = &weights_[std::size_t{r} * columns_];
        for (std::uint32_t c = 0; c < columns_; ++c) y[c] += x[r] * row[c];
    }
}

void Crossbar::multiply(const void *ib, void *ob) {
    if (mode_ == Mode::F32) {
        multiply_floats(static_cast<const float *>(ib), static_cast<float *>(ob));
        return;
    }
    load_input(ib);
    if (mode_ == Mode::I8n && wide_) {
        digitize_exactly(static_cast<std::int8_t *>(ob));
        return;
    }
    sum_pairs();
    if (mode_ == Mode::I8n) {
        digitize(static_cast<std::int8_t *>(ob));
        return;
    }
    auto *wide = static_cast<std::int32_t *>(ob);
    for (std::uint32_t c = 0; c < columns_; ++c)
        wide[c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums_[c]) +
                                            static_cast<std::uint32_t>(offset_[c]));
}

}  // namespace cim
