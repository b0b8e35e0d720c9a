// A linked image: what NAME.cfg and NAME.bin say (spec/image.md, sections 2 and 3).
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "machine.h"

namespace cim {

enum class Mode { F32, I8, I8n };
enum class Element : std::uint8_t { I8, U8, I32, F32 };

inline std::uint32_t element_bytes(Element type) {
    return type == Element::I8 || type == Element::U8 ? 1 : 4;
}

// A file that cannot be read, or is refused.
struct ImageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Region {
    std::string name;
    std::string role;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    std::vector<std::uint8_t> content;  // empty: all zero
};

struct CoreImage {
    std::uint32_t number = 0;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
    std::uint64_t address = 0;
    std::uint64_t entry = 0;               // bytes
    std::vector<std::uint64_t> program;    // all words, also those before the entry
    std::vector<std::uint8_t> weights;     // [row][column], int16 or float32; empty: no crossbar
    std::map<std::string, std::vector<std::uint32_t>> parameters;  // bits of int32 or float32

    std::uint64_t first() const { return entry / 8; }
    std::uint64_t executed_bytes() const { return 8 * (program.size() - first()); }
};

struct Image {
    Machine machine;
    Mode mode = Mode::I8;
    Element ifm = Element::I8;
    Element ofm = Element::I8;
    std::uint64_t memory_bytes = 0;
    std::vector<Region> regions;
    std::vector<CoreImage> cores;  // by number

    Element partial_sum() const;
    const Region *region(const std::string &name) const;  // nullptr: there is none
};

Image read_image(const std::string &cfg_path);

}  // namespace cim
