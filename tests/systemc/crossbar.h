// The crossbar of a core: its cells and the matrix-vector product (spec/machine.md, instruction mvm of spec/isa.toml).
#pragma once

#include <cstdint>
#include <vector>

#include "image.h"

namespace cim {

class Crossbar {
  public:
    // `offset` and `adc_mul` have one element a column.
    Crossbar(const Image &image, const CoreImage &core, std::vector<std::int32_t> offset,
             std::vector<float> adc_mul);

    std::uint32_t rows() const { return rows_; }

    // ob[0:columns] from ib[0:rows].
    void multiply(const void *ib, void *ob);

  private:
    void pack(const std::int16_t *cells);
    void load_input(const void *ib);
    void sum_pairs();
    void digitize(std::int8_t *ob) const;
    void digitize_exactly(std::int8_t *ob) const;
    void multiply_floats(const float *x, float *y) const;

    Mode mode_;
    Element ifm_;
    std::uint32_t rows_, columns_;
    std::uint32_t stride_ = 0;           // columns, rounded up to whole vectors
    bool wide_ = false;                  // whether a narrow machine's sum may exceed 32 bits
    std::vector<std::int16_t> cells_;    // [row][column]
    std::vector<std::int16_t> packed_;   // [pair of rows][column][row in pair]
    std::vector<float> weights_;         // [row][column] in mode f32
    std::vector<std::int32_t> offset_;
    std::vector<float> adc_mul_;
    std::vector<std::int16_t> input_;    // rows, an even number
    std::vector<std::int32_t> sums_;     // stride
};

}  // namespace cim
