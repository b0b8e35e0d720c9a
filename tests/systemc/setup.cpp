#include "system.h"

#include <algorithm>

namespace cim {

std::uint64_t setup_cycles(const Image &image) {
    const Machine &m = image.machine;
    const std::uint64_t cell_bytes = image.mode == Mode::F32 ? 4 : 2;
    std::uint64_t cycles = 0, elements = 0, most_rows = 0;
    for (const CoreImage &core : image.cores) {
        const bool fetched = core.executed_bytes() > m.instruction_memory_bytes;
        const std::uint64_t loaded =
            fetched ? m.instruction_memory_bytes / 16 * 16 : 8 * core.program.size();
        cycles += ceil_div(loaded, m.width_bytes);
        cycles += ceil_div(std::uint64_t{core.rows} * core.columns * cell_bytes, m.width_bytes);
        most_rows = std::max<std::uint64_t>(most_rows, core.rows);
        for (const auto &[name, values] : core.parameters) elements += values.size();
    }
    for (const Region &region : image.regions) cycles += ceil_div(region.content.size(), m.width_bytes);
    if (const Region *ifm = image.region("ifm")) cycles += ceil_div(ifm->size_bytes, m.width_bytes);
    return cycles + most_rows * m.row_program_cycles +
           (image.cores.size() + elements) * m.register_write_cycles;
}

}  // namespace cim
