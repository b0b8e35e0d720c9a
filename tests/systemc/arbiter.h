// Which of the initiators that ask for a channel is granted it next (spec/timing.md, section 3, "Arbitration").
#pragma once

#include <cstdint>
#include <vector>

#include "machine.h"

namespace cim {

class Arbiter {
  public:
    Arbiter(Arbitration policy, std::uint32_t initiators)
        : policy_(policy), initiators_(initiators) {}

    bool empty() const { return asking_ == 0; }

    // Initiators must be told in the order of the cycles in which they ask, and in one cycle in their own order.
    void ask(std::uint32_t initiator);

    // The one that is granted; one asks.
    std::uint32_t grant();

  private:
    std::uint32_t next_from(std::uint32_t first) const;

    Arbitration policy_;
    std::uint32_t initiators_;
    std::uint32_t asking_ = 0;
    // oldest_first: a ring of all that ask, the oldest at head_.
    std::vector<std::uint32_t> ring_;
    std::uint32_t head_ = 0;
    // round_robin: a bit for every initiator that asks, and one for every word that is not 0.
    std::vector<std::uint64_t> bits_;
    std::vector<std::uint64_t> summary_;
    std::uint32_t last_ = 0;  // one more than the initiator granted last
};

}  // namespace cim
