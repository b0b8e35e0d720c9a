#include "image.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "types.h"

namespace cim {
namespace {

using nlohmann::json;

constexpr char MAGIC[8] = {'C', 'I', 'M', ' ', 'B', 'I', 'N', 0};
constexpr std::uint64_t HEADER_BYTES = 16;

using Bytes = std::vector<std::uint8_t>;

std::ifstream open(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw ImageError(path + ": cannot be read");
    return stream;
}

// Source locations are most of a cfg, and nothing here needs them.
bool skip_locations(int depth, json::parse_event_t event, json &parsed) {
    return !(depth == 1 && event == json::parse_event_t::key && parsed == "locations");
}

std::uint64_t number_or(const json &object, const char *key, std::uint64_t missing) {
    const auto found = object.find(key);
    if (found == object.end()) return missing;
    if (found->is_string()) return UNLIMITED;  // "unlimited"
    return found->get<std::uint64_t>();
}

std::uint64_t derived_mvm_cycles(const json &machine, std::uint32_t outputs) {
    const json &converters = machine.at("converters");
    const auto value = [&](const char *key) { return converters.at(key).get<std::uint64_t>(); };
    const std::uint64_t weight_bits = machine.at("core").at("weight_bits");
    const std::uint64_t frequency = machine.at("clock").at("frequency_hz");
    const std::uint64_t bitlines = outputs * ceil_div(weight_bits, value("cell_bits"));
    const std::uint64_t rounds = ceil_div(bitlines, value("adc_count"));
    // A product of two numbers up to 2^40 needs more than 64 bits.
    const auto conversions = static_cast<unsigned __int128>(rounds) * frequency;
    const auto rate = value("adc_rate_hz");
    const auto slice = static_cast<std::uint64_t>((conversions + rate - 1) / rate);
    return ceil_div(value("input_bits"), value("dac_bits")) * slice;
}

Machine read_machine(const json &all) {
    const json &core = all.at("core"), &bus = all.at("bus"), &memory = all.at("memory");
    const std::string crossbar = core.at("crossbar");
    const auto cross = crossbar.find('x');
    Machine m;
    m.outputs = static_cast<std::uint32_t>(std::stoul(crossbar.substr(0, cross)));
    m.inputs = static_cast<std::uint32_t>(std::stoul(crossbar.substr(cross + 1)));
    m.instruction_memory_bytes = number_or(core, "instruction_memory_bytes", UNLIMITED);
    m.issue_cycles = core.at("issue_cycles");
    m.mvm_cycles = core.at("mvm_cycles").is_string() ? derived_mvm_cycles(all, m.outputs)
                                                     : core.at("mvm_cycles").get<std::uint64_t>();
    m.gpeu_lanes = core.at("gpeu_lanes");
    m.gpeu_latency_cycles = core.at("gpeu_latency_cycles");
    m.width_bytes = bus.at("width_bytes");
    m.per_target = bus.at("topology") == "per_target";
    m.arbitration = bus.at("arbitration") == "oldest_first" ? Arbitration::OldestFirst
                                                            : Arbitration::RoundRobin;
    m.read_outstanding = bus.at("read_outstanding");
    m.write_outstanding = bus.at("write_outstanding");
    m.register_latency_cycles = bus.at("register_latency_cycles");
    m.read_latency_cycles = memory.at("read_latency_cycles");
    m.write_latency_cycles = memory.at("write_latency_cycles");
    m.memory_read_outstanding = number_or(memory, "read_outstanding", UNLIMITED);
    m.memory_write_outstanding = number_or(memory, "write_outstanding", UNLIMITED);
    m.banks = number_or(memory, "banks", UNLIMITED);
    m.bank_interleave_bytes = number_or(memory, "bank_interleave_bytes", 64);
    m.bank_cycles = number_or(memory, "bank_cycles", 1);
    m.separate_ports = memory.value("bank_ports", "shared") == "separate";
    m.row_program_cycles = all.at("setup").at("row_program_cycles");
    m.register_write_cycles = all.at("setup").at("register_write_cycles");
    return m;
}

Element read_element(const std::string &name) {
    if (name == "i8") return Element::I8;
    if (name == "u8") return Element::U8;
    if (name == "i32") return Element::I32;
    if (name == "f32") return Element::F32;
    throw ImageError("element type '" + name + "' must be i8, u8, i32 or f32");
}

Mode read_mode(const std::string &name) {
    if (name == "f32") return Mode::F32;
    if (name == "i8") return Mode::I8;
    if (name == "i8n") return Mode::I8n;
    throw ImageError("mode '" + name + "' must be f32, i8 or i8n");
}

Bytes read_segment(const Bytes &bin, const json &segment) {
    const std::uint64_t offset = segment.at("offset"), size = segment.at("size");
    if (offset > bin.size() || size > bin.size() - offset)
        throw ImageError("a segment ends beyond the bin");
    return Bytes(bin.begin() + offset, bin.begin() + offset + size);
}

template <class Word>
std::vector<Word> read_words(const Bytes &bin, const json &segment) {
    const Bytes bytes = read_segment(bin, segment);
    if (bytes.size() % sizeof(Word)) throw ImageError("a segment is no whole number of elements");
    std::vector<Word> words(bytes.size() / sizeof(Word));
    std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
}

Region read_region(const Bytes &bin, const json &one) {
    Region region;
    region.name = one.at("name");
    region.role = one.at("role");
    region.address = one.at("address");
    region.size_bytes = one.at("size_bytes");
    if (!one.at("content").is_null()) region.content = read_segment(bin, one.at("content"));
    return region;
}

CoreImage read_core(const Bytes &bin, const json &one) {
    CoreImage core;
    core.number = one.at("number");
    core.rows = one.at("rows");
    core.columns = one.at("columns");
    core.address = one.at("address");
    core.entry = one.value("entry", std::uint64_t{0});
    core.program = read_words<std::uint64_t>(bin, one.at("program"));
    if (!one.at("weights").is_null()) core.weights = read_segment(bin, one.at("weights"));
    for (const auto &[name, segment] : one.at("parameters").items())
        core.parameters[name] = read_words<std::uint32_t>(bin, segment);
    if (core.entry % 8 || core.first() > core.program.size())
        throw ImageError("the entry of a core is no instruction of it");
    return core;
}

Bytes read_bin(const std::string &path, std::uint64_t size) {
    auto stream = open(path);
    const Bytes bin((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    std::uint32_t version = 0;
    if (bin.size() != size) throw ImageError(path + ": its size is not that of the cfg");
    if (bin.size() >= HEADER_BYTES) std::memcpy(&version, bin.data() + sizeof MAGIC, sizeof version);
    if (version != 1 || std::memcmp(bin.data(), MAGIC, sizeof MAGIC) != 0)
        throw ImageError(path + ": is no bin file of version 1");
    return bin;
}

Image parse(const json &cfg, const std::string &folder) {
    if (cfg.value("format", "") != "cim-cfg" || cfg.value("format_version", 0) != 1)
        throw ImageError("is no cim-cfg of version 1");
    if (!cfg.at("extensions").empty()) throw ImageError("needs an extension of the ISA");
    const Bytes bin = read_bin(folder + cfg.at("bin_name").get<std::string>(), cfg.at("bin_size"));
    Image image;
    image.machine = read_machine(cfg.at("machine"));
    image.mode = read_mode(cfg.at("mode"));
    image.ifm = read_element(cfg.at("ifm"));
    image.ofm = read_element(cfg.at("ofm"));
    image.memory_bytes = cfg.at("memory_bytes");
    for (const json &one : cfg.at("regions")) image.regions.push_back(read_region(bin, one));
    for (const json &one : cfg.at("cores")) image.cores.push_back(read_core(bin, one));
    std::sort(image.cores.begin(), image.cores.end(),
              [](const CoreImage &a, const CoreImage &b) { return a.number < b.number; });
    for (const Region &one : image.regions)
        if (one.address + one.size_bytes > image.memory_bytes ||
            (!one.content.empty() && one.content.size() != one.size_bytes))
            throw ImageError("region " + one.name + " does not fit");
    for (const CoreImage &one : image.cores)
        if (one.address + 8 * one.program.size() > image.memory_bytes)
            throw ImageError("a program does not fit into memory");
    return image;
}

}  // namespace

Element Image::partial_sum() const {
    return mode == Mode::F32 ? Element::F32 : mode == Mode::I8 ? Element::I32 : Element::I8;
}

const Region *Image::region(const std::string &name) const {
    for (const Region &one : regions)
        if (one.name == name) return &one;
    return nullptr;
}

Image read_image(const std::string &cfg_path) {
    const auto slash = cfg_path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : cfg_path.substr(0, slash + 1);
    auto stream = open(cfg_path);
    try {
        return parse(json::parse(stream, skip_locations), folder);
    } catch (const json::exception &problem) {
        throw ImageError(cfg_path + ": " + problem.what());
    } catch (const ImageError &problem) {
        throw ImageError(cfg_path + ": " + problem.what());
    }
}

}  // namespace cim
