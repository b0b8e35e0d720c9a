// The fetch port of a core and what of its program has come (spec/timing.md, section 7).
#pragma once

#include <cstdint>
#include <vector>

#include "image.h"
#include "port.h"

namespace cim {

// Told that a block which the core waits for since `reached` can be executed from cycle `from` on.
struct FetchOwner {
    virtual void block_came(Cycle from, Cycle reached) = 0;

  protected:
    ~FetchOwner() = default;
};

class Fetcher : PortOwner {
  public:
    Fetcher(FetchOwner &owner, const Machine &machine, const CoreImage &core, Pool &pool);

    std::size_t block_instructions() const { return block_; }

    // The cycle in which the last block came that has been fetched.
    Cycle came() const { return came_; }

    // The core has completed the block before `block` in cycle `at`. Whether `block` has come; `from` is then the cycle
    // from which it can be executed. If not, the owner is told later. Either way the block after it is fetched.
    bool reach(std::size_t block, Cycle at, Cycle &from);

    Port port;

  private:
    void fetch(std::size_t block, Cycle from);
    void completed(Cycle finish) override;

    FetchOwner &owner_;
    const Machine &machine_;
    const std::size_t instructions_;
    const std::uint64_t address_;
    const std::size_t block_;
    std::vector<std::uint8_t> half_;  // where a block goes; the core executes the decoded program
    std::size_t come_ = 1;            // the last block that has come, or will at a known cycle
    Cycle came_ = 0;                  // that cycle
    bool awaited_ = false;            // whether the core waits for the block after come_
    Cycle reached_ = 0;               // since when
};

}  // namespace cim
