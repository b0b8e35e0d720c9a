#include "fetcher.h"

#include <algorithm>

namespace cim {

constexpr std::uint64_t WORD_BYTES = 8;

Fetcher::Fetcher(FetchOwner &owner, const Machine &machine, const CoreImage &core, Pool &pool)
    : port("fetch", *this, pool, machine.width_bytes), owner_(owner), machine_(machine),
      instructions_(core.program.size() - core.first()), address_(core.address + core.entry),
      block_(machine.instruction_memory_bytes / (2 * WORD_BYTES)), half_(block_ * WORD_BYTES) {}

bool Fetcher::reach(std::size_t block, Cycle at, Cycle &from) {
    if (block > come_) {
        awaited_ = true;
        reached_ = at;
        return false;
    }
    from = block < come_ ? at : std::max(at, came_);
    fetch(block + 1, from);
    return true;
}

void Fetcher::fetch(std::size_t block, Cycle from) {
    const std::size_t first = block * block_;
    if (first >= instructions_ || block < 2) return;
    const std::uint64_t bytes = WORD_BYTES * std::min(block_, instructions_ - first);
    port.access(from, tlm::TLM_READ_COMMAND, address_ + WORD_BYTES * first, half_.data(), bytes,
                machine_.read_outstanding);
}

void Fetcher::completed(Cycle finish) {
    ++come_;
    came_ = finish;
    if (!awaited_) return;
    awaited_ = false;
    const Cycle from = std::max(reached_, came_);
    fetch(come_ + 1, from);
    owner_.block_came(from, reached_);
}

}  // namespace cim
