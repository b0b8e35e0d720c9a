#include "agenda.h"

namespace cim {

Agenda::Agenda() { static_assert(WORDS <= 32, "used_words_ has a bit for every word"); }

Cycle Agenda::next() const {
    if (used_words_ == 0) return later_.empty() ? NEVER : later_.top().cycle;
    const std::uint32_t slot = present_ % SPAN, word = slot / 64;
    const std::uint64_t here = used_[word] >> (slot % 64);
    if (here != 0) return present_ + static_cast<Cycle>(__builtin_ctzll(here));
    // The words after this one come first, then those before it, and last what is left of it.
    const std::uint32_t after = word + 1 < WORDS ? used_words_ & (~std::uint32_t{0} << (word + 1)) : 0;
    const std::uint32_t found = static_cast<std::uint32_t>(__builtin_ctz(after != 0 ? after : used_words_));
    const std::uint32_t at = found * 64 + static_cast<std::uint32_t>(__builtin_ctzll(used_[found]));
    return present_ + (at - slot) % SPAN;
}

void Agenda::advance(Cycle cycle) {
    present_ = cycle;
    while (!later_.empty() && later_.top().cycle - present_ < SPAN) {
        insert(later_.top());
        later_.pop();
    }
}

bool Agenda::take(Event &event) {
    const std::uint32_t slot = present_ % SPAN;
    List &list = lists_[slot];
    if (list.first == NONE) return false;
    const std::uint32_t taken = list.first;
    event = nodes_[taken].event;
    list.first = nodes_[taken].next;
    nodes_[taken].next = free_;
    free_ = taken;
    if (list.first == NONE) {
        used_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
        if (used_[slot / 64] == 0) used_words_ &= ~(std::uint32_t{1} << (slot / 64));
    }
    return true;
}

void Agenda::insert(const Event &event) {
    const std::uint32_t slot = event.cycle % SPAN;
    const std::uint32_t added = new_node(event);
    List &list = lists_[slot];
    if (list.first == NONE) {
        list.first = list.last = added;
        used_[slot / 64] |= std::uint64_t{1} << (slot % 64);
        used_words_ |= std::uint32_t{1} << (slot / 64);
    } else if (nodes_[list.last].event.rank <= event.rank) {
        nodes_[list.last].next = added;
        list.last = added;
    } else {
        std::uint32_t *link = &list.first;
        while (nodes_[*link].event.rank <= event.rank) link = &nodes_[*link].next;
        nodes_[added].next = *link;
        *link = added;
    }
}

std::uint32_t Agenda::new_node(const Event &event) {
    if (free_ == NONE) {
        nodes_.push_back({event, NONE});
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {event, NONE};
    return node;
}

}  // namespace cim
