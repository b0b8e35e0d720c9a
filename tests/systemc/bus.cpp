#include "bus.h"

#include <algorithm>
#include <string>

namespace cim {
namespace {

constexpr Cycle NEVER = Agenda::NEVER;

// What the bus decodes of a payload.
Burst &decoded(tlm::tlm_generic_payload &payload) {
    Burst &burst = *payload.get_extension<Burst>();
    const std::uint64_t address = payload.get_address();
    burst.read = payload.is_read();
    burst.target = address < REGISTERS ? 0 : 1 + static_cast<std::uint32_t>((address - REGISTERS) / REGISTER_BYTES);
    return burst;
}

}  // namespace

Bus::Initiator::Initiator(Bus &bus, std::uint32_t index, const char *name)
    : bus(bus), index(index), socket(name) {
    socket.bind(*this);
}

// A port asks for AR or AW, now or later.
tlm::tlm_sync_enum Bus::Initiator::nb_transport_fw(Payload &payload, tlm::tlm_phase &phase,
                                                   sc_core::sc_time &delay) {
    if (phase != tlm::BEGIN_REQ) return tlm::TLM_ACCEPTED;
    bus.agenda_.add(now() + to_cycles(delay), Kind::AskAddress, index, &decoded(payload));
    if (!bus.working_) bus.schedule();
    return tlm::TLM_ACCEPTED;
}

void Bus::Initiator::b_transport(Payload &payload, sc_core::sc_time &) {
    SC_REPORT_FATAL("bus", "knows the approximately-timed style only");
    payload.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
}

Bus::Set::Set(bool to_memory, Arbitration policy, std::uint32_t initiators)
    : to_memory(to_memory), ar(Role::AR, *this, policy, initiators), r(Role::R, *this, policy, initiators),
      aw(Role::AW, *this, policy, initiators), b(Role::B, *this, policy, initiators) {}

Bus::Bus(sc_core::sc_module_name name, const Machine &machine, std::uint32_t cores, std::uint32_t fetchers)
    : sc_module(name), per_target_(machine.per_target), banked_(machine.banked()), cores_(cores),
      most_reads_(machine.memory_read_outstanding), most_writes_(machine.memory_write_outstanding),
      retry_(NEVER) {
    for (std::uint32_t k = 0; k < cores + fetchers; ++k)
        initiators_.push_back(std::make_unique<Initiator>(*this, k, ("in" + std::to_string(k)).c_str()));
    for (std::uint32_t k = 0; k < 1 + cores; ++k)
        targets_.push_back(std::make_unique<Target>(("out" + std::to_string(k)).c_str()));
    for (std::uint32_t k = 0; k < (per_target_ ? 1 + cores : 1); ++k)
        sets_.push_back(std::make_unique<Set>(k == 0, machine.arbitration, cores + fetchers));
    SC_HAS_PROCESS(Bus);
    SC_METHOD(cycle);
    sensitive << wake_;
    dont_initialize();
}

// One cycle in which something happens: first what arrives, then the channels.
void Bus::cycle() {
    working_ = true;
    present_ = now();
    agenda_.advance(present_);
    for (Event event; agenda_.take(event);) handle(event);
    retry_ = NEVER;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < asked_.size(); ++k) {
        Channel &channel = *asked_[k];
        if (arbitrate(channel))
            asked_[kept++] = &channel;
        else
            channel.listed = false;
    }
    asked_.resize(kept);
    working_ = false;
    schedule();
}

void Bus::schedule() {
    const Cycle next = std::min(retry_, agenda_.next());
    if (next != NEVER) wake_.notify(to_time(next - now()));
}

void Bus::handle(const Event &event) {
    Initiator &initiator = *initiators_[event.initiator()];
    Burst &burst = *event.burst;
    switch (event.kind) {
        case Kind::WriteReaches:
            initiator.arrival = std::max(initiator.arrival, reach(burst, present_));
            agenda_.add(initiator.arrival, Kind::Arrives, initiator.index, &burst);
            break;
        case Kind::ReadReaches:
            agenda_.add(reach(burst, present_), Kind::DataReady, initiator.index, &burst);
            break;
        case Kind::Arrives:
            move(burst);
            respond(initiator, burst);
            break;
        case Kind::DataReady:
            respond(initiator, burst);
            break;
        case Kind::AskAddress: {
            Set &set = set_of(burst);
            initiator.request = &burst;
            burst.asked = present_;
            ask(burst.read ? set.ar : set.aw, initiator.index);
            break;
        }
        case Kind::AskData:
            ask(set_of(burst).r, initiator.index);
            break;
        case Kind::ReadLeaves:
            --reads_;
            break;
        case Kind::WriteLeaves:
            --writes_;
            break;
    }
}

// Grants the channel if that can be; whether somebody still asks for it.
bool Bus::arbitrate(Channel &channel) {
    if (channel.free_from <= present_) {
        if (blocked(channel)) return true;  // until a burst leaves the memory, which is on the agenda
        Initiator &initiator = *initiators_[channel.arbiter.grant()];
        switch (channel.role) {
            case Role::AR: grant_ar(initiator); break;
            case Role::R: grant_r(channel.set, initiator); break;
            case Role::AW: grant_aw(channel.set, initiator); break;
            case Role::B: grant_b(channel.set, initiator); break;
        }
        if (channel.arbiter.empty()) return false;
    }
    retry_ = std::min(retry_, channel.free_from);
    return true;
}

bool Bus::blocked(const Channel &channel) const {
    if (channel.role == Role::AR) return reads_ >= most_reads_;
    if (channel.role == Role::AW) return channel.set.to_memory && writes_ >= most_writes_;
    return false;
}

void Bus::ask(Channel &channel, std::uint32_t initiator) {
    channel.arbiter.ask(initiator);
    if (channel.listed) return;
    channel.listed = true;
    asked_.push_back(&channel);
}

// The data or response of a burst is ready; it asks unless an older one of its initiator is before it.
void Bus::respond(Initiator &initiator, Burst &burst) {
    burst.ready = present_;
    burst.is_ready = true;
    if (initiator.oldest != &burst) return;
    Set &set = set_of(burst);
    if (!burst.read)
        ask(set.b, initiator.index);
    else if (initiator.drained <= present_)
        ask(set.r, initiator.index);
    else
        agenda_.add(initiator.drained, Kind::AskData, initiator.index, &burst);
}

void Bus::grant_ar(Initiator &initiator) {
    Burst &burst = *initiator.request;
    Set &set = set_of(burst);
    set.ar.free_from = present_ + 1;
    counters_.ar.stalls += present_ - burst.asked;
    ++counters_.ar.busy;
    if (most_reads_ != UNLIMITED) ++reads_;
    await_response(initiator, burst);
    if (banked_)
        agenda_.add(present_ + 1, Kind::ReadReaches, initiator.index, &burst);
    else
        agenda_.add(reach(burst, present_ + 1), Kind::DataReady, initiator.index, &burst);
    end_request(initiator, burst);
}

void Bus::grant_aw(Set &set, Initiator &initiator) {
    Burst &burst = *initiator.request;
    const bool call = burst.target != 0;
    const Cycle data = std::max(present_ + 1, set.data_end);
    set.aw.free_from = present_ + 1;
    set.data_end = data + burst.beats;
    counters_.aw.stalls += present_ - burst.asked;
    ++counters_.aw.busy;
    counters_.w.stalls += data - (present_ + 1);
    counters_.w.busy += burst.beats;
    if (most_writes_ != UNLIMITED && !call) ++writes_;
    await_response(initiator, burst);
    if (banked_ && !call)
        agenda_.add(set.data_end, Kind::WriteReaches, initiator.index, &burst);
    else
        agenda_.add(reach(burst, set.data_end), Kind::Arrives, initiator.index, &burst);
    end_request(initiator, burst);
}

void Bus::grant_r(Set &set, Initiator &initiator) {
    Burst &burst = take_response(initiator);
    const Cycle finish = present_ + burst.beats;
    set.r.free_from = finish;
    counters_.r.stalls += present_ - burst.ready;
    counters_.r.busy += burst.beats;
    if (most_reads_ != UNLIMITED) agenda_.add(finish, Kind::ReadLeaves, initiator.index, &burst);
    initiator.drained = finish;
    move(burst);
    if (initiator.oldest != nullptr && initiator.oldest->is_ready)
        agenda_.add(finish, Kind::AskData, initiator.index, initiator.oldest);
    begin_response(initiator, burst, burst.beats);
}

void Bus::grant_b(Set &set, Initiator &initiator) {
    Burst &burst = take_response(initiator);
    set.b.free_from = present_ + 1;
    counters_.b.stalls += present_ - burst.ready;
    ++counters_.b.busy;
    if (most_writes_ != UNLIMITED && burst.target == 0)
        agenda_.add(present_ + 1, Kind::WriteLeaves, initiator.index, &burst);
    if (initiator.oldest != nullptr && initiator.oldest->is_ready) ask(set.b, initiator.index);
    begin_response(initiator, burst, 1);
}

// The burst follows those of its initiator that wait for R or B.
void Bus::await_response(Initiator &initiator, Burst &burst) {
    burst.is_ready = false;
    burst.next = nullptr;
    if (initiator.oldest == nullptr)
        initiator.oldest = &burst;
    else
        initiator.newest->next = &burst;
    initiator.newest = &burst;
}

Burst &Bus::take_response(Initiator &initiator) {
    Burst &burst = *initiator.oldest;
    initiator.oldest = burst.next;
    return burst;
}

// A burst reaches its target in cycle `at`; the cycle in which its data is ready, or it arrives.
Cycle Bus::reach(Burst &burst, Cycle at) {
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = to_time(at - present_);
    targets_[burst.target]->socket->nb_transport_fw(burst.payload, phase, delay);
    return present_ + to_cycles(delay);
}

// The bytes of a burst are moved, or SEQ_NR is incremented.
void Bus::move(Burst &burst) {
    tlm::tlm_phase phase = tlm::END_RESP;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    targets_[burst.target]->socket->nb_transport_fw(burst.payload, phase, delay);
}

Traffic &Bus::traffic_of(const Initiator &initiator, const Burst &burst) {
    if (burst.read) return initiator.index < cores_ ? counters_.load : counters_.fetch;
    return burst.target != 0 ? counters_.call : counters_.store;
}

void Bus::end_request(Initiator &initiator, Burst &burst) {
    Traffic &traffic = traffic_of(initiator, burst);
    ++traffic.issued;
    traffic.bytes += burst.payload.get_data_length();
    tlm::tlm_phase phase = tlm::END_REQ;
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    initiator.socket->nb_transport_bw(burst.payload, phase, delay);
}

void Bus::begin_response(Initiator &initiator, Burst &burst, Cycle duration) {
    ++traffic_of(initiator, burst).completed;
    tlm::tlm_phase phase = tlm::BEGIN_RESP;
    sc_core::sc_time delay = to_time(duration);
    initiator.socket->nb_transport_bw(burst.payload, phase, delay);
}

}  // namespace cim
