#include "arbiter.h"

namespace cim {
namespace {

constexpr std::uint32_t NONE = ~std::uint32_t{0};

// The first bit that is set from `first` on, or NONE.
std::uint32_t first_set(const std::vector<std::uint64_t> &words, std::uint32_t first) {
    std::uint32_t word = first / 64;
    if (word >= words.size()) return NONE;
    std::uint64_t bits = words[word] & (~std::uint64_t{0} << (first % 64));
    while (bits == 0) {
        if (++word == words.size()) return NONE;
        bits = words[word];
    }
    return word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
}

void set(std::vector<std::uint64_t> &words, std::uint32_t bit) {
    words[bit / 64] |= std::uint64_t{1} << (bit % 64);
}

// Whether the word of the bit is 0 now.
bool clear(std::vector<std::uint64_t> &words, std::uint32_t bit) {
    return (words[bit / 64] &= ~(std::uint64_t{1} << (bit % 64))) == 0;
}

}  // namespace

void Arbiter::ask(std::uint32_t initiator) {
    if (policy_ == Arbitration::OldestFirst) {
        if (ring_.empty()) ring_.resize(initiators_);
        std::uint32_t slot = head_ + asking_;
        if (slot >= initiators_) slot -= initiators_;
        ring_[slot] = initiator;
    } else {
        if (bits_.empty()) {
            bits_.resize((initiators_ + 63) / 64);
            summary_.resize((bits_.size() + 63) / 64);
        }
        set(bits_, initiator);
        set(summary_, initiator / 64);
    }
    ++asking_;
}

std::uint32_t Arbiter::grant() {
    --asking_;
    if (policy_ == Arbitration::OldestFirst) {
        const std::uint32_t initiator = ring_[head_];
        if (++head_ == initiators_) head_ = 0;
        return initiator;
    }
    std::uint32_t initiator = next_from(last_);
    if (initiator == NONE) initiator = next_from(0);
    if (clear(bits_, initiator)) clear(summary_, initiator / 64);
    last_ = initiator + 1;
    return initiator;
}

std::uint32_t Arbiter::next_from(std::uint32_t first) const {
    const std::uint32_t word = first / 64;
    if (word >= bits_.size()) return NONE;
    const std::uint64_t rest = bits_[word] & (~std::uint64_t{0} << (first % 64));
    if (rest != 0) return word * 64 + static_cast<std::uint32_t>(__builtin_ctzll(rest));
    const std::uint32_t other = first_set(summary_, word + 1);
    return other == NONE ? NONE : other * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits_[other]));
}

}  // namespace cim
