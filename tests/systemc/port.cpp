#include "port.h"

namespace cim {

void Port::access(Cycle start, tlm::tlm_command command, std::uint64_t address, std::uint8_t *data,
                  std::uint64_t bytes, std::uint64_t limit) {
    command_ = command;
    address_ = address;
    end_ = address + bytes;
    data_ = data;
    limit_ = limit;
    asked_ = finished_ = 0;
    ask(start);
}

void Port::ask(Cycle at) {
    const std::uint64_t end = burst_end(address_, end_, width_);
    tlm::tlm_generic_payload *payload = pool_.take();
    payload->set_command(command_);
    payload->set_address(address_);
    payload->set_data_ptr(data_);
    payload->set_data_length(static_cast<unsigned>(end - address_));
    payload->set_streaming_width(static_cast<unsigned>(end - address_));
    payload->set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    // A CALL is one beat whatever the width.
    payload->get_extension<Burst>()->beats = address_ >= REGISTERS ? 1 : beats(address_, end, width_);
    data_ += end - address_;
    address_ = end;
    ++asked_;
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time delay = to_time(at - now());
    socket->nb_transport_fw(*payload, phase, delay);
}

void Port::granted(Cycle at) {
    if (address_ == end_) return;
    // Bursts finish in order, so burst k may ask once burst k - limit is finished.
    if (asked_ < limit_) {
        ask(at + 1);
    } else if (finished_ > asked_ - limit_) {
        ask(std::max(at + 1, finishes_[(asked_ - limit_) % MOST_IN_FLIGHT]));
    } else {
        held_ = true;
        earliest_ = at + 1;
    }
}

void Port::finished(tlm::tlm_generic_payload &payload, Cycle finish) {
    payload.release();
    finishes_[finished_++ % MOST_IN_FLIGHT] = finish;
    if (held_) {
        held_ = false;
        ask(std::max(earliest_, finish));
    } else if (address_ == end_ && finished_ == asked_) {
        owner_.completed(finish);
    }
}

tlm::tlm_sync_enum Port::nb_transport_bw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                         sc_core::sc_time &delay) {
    if (phase == tlm::END_REQ) {
        granted(now() + to_cycles(delay));
        return tlm::TLM_ACCEPTED;
    }
    const Cycle finish = now() + to_cycles(delay);
    phase = tlm::END_RESP;
    finished(payload, finish);
    return tlm::TLM_UPDATED;
}

}  // namespace cim
