// The speed scenarios A, C, D and E of crates/narrows-sim/benches/scenarios.rs, in htsim: `narrows_bench NAME` runs one
// scenario once and prints its counts as one line of JSON. The caller measures the time.
//
// The settings make htsim fast. Nothing is logged, and htsim's messages are discarded. Links
// without delay have no pipe. Packets carry their routes. The timer that looks for timeouts runs only where packets are
// dropped. htsim's TCP is NewReno without SACK. It acknowledges each packet, and all packets of a flow have one size.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "../peak.h"
#include "cbr.h"
#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

// htsim's default slow-start threshold is 100 packets, so slow start would end too early.
constexpr uint32_t kSsthresh = 0x7fffffff;
// Only the queues of the bottleneck have a limit.
constexpr mem_b kUnlimited = mem_b{1} << 40;

uint64_t g_packet_hops = 0;

// A queue that counts arrivals, like a link in Narrows.
class CountingQueue : public Queue {
  public:
    CountingQueue(double mbit, mem_b bytes, EventList& events)
        : Queue(speedFromMbps(mbit), bytes, events, nullptr) {}

    void receivePacket(Packet& packet) override {
        ++g_packet_hops;
        Queue::receivePacket(packet);
    }
};

struct Counts {
    uint64_t delivered_packets = 0;
    uint64_t delivered_bytes = 0;
    uint64_t flows = 0;
    uint64_t drops = 0;
};

// One direction of a bottleneck link.
struct Direction {
    Direction(double mbit, simtime_picosec delay, mem_b bytes, EventList& events)
        : queue(mbit, bytes, events), pipe(delay, events) {}

    CountingQueue queue;
    Pipe pipe;
};

// A dumbbell, in which each packet takes three hops: access link, bottleneck, access link.
class Dumbbell {
  public:
    Dumbbell(double mbit, simtime_picosec rtt, uint32_t packets, uint32_t packet_bytes, EventList& events)
        : m_mbit(mbit),
          m_events(events),
          m_forth(mbit, rtt / 2, mem_b{packets} * packet_bytes, events),
          m_back(mbit, rtt / 2, mem_b{packets} * packet_bytes, events) {}

    // The four access links of a sender and a receiver.
    struct Access {
        CountingQueue from_sender, to_receiver, from_receiver, to_sender;
    };

    Access* access() {
        const double mbit = 10 * m_mbit;
        return new Access{{mbit, kUnlimited, m_events},
                          {mbit, kUnlimited, m_events},
                          {mbit, kUnlimited, m_events},
                          {mbit, kUnlimited, m_events}};
    }

    // Starts a flow of `bytes` bytes (0: without an end).
    TcpSrc* flow(Access& access, uint64_t bytes, simtime_picosec start, Counts& counts) {
        auto* source = new TcpSrc(nullptr, nullptr, m_events);
        auto* sink = new TcpSink();
        source->set_ssthresh(kSsthresh);
        if (bytes > 0) {
            source->set_flowsize(bytes);
        }
        auto* forth = new Route();
        for (PacketSink* hop : std::initializer_list<PacketSink*>{&access.from_sender, &m_forth.queue, &m_forth.pipe,
                                                                  &access.to_receiver, sink}) {
            forth->push_back(hop);
        }
        auto* back = new Route();
        for (PacketSink* hop : std::initializer_list<PacketSink*>{&access.from_receiver, &m_back.queue, &m_back.pipe,
                                                                  &access.to_sender, source}) {
            back->push_back(hop);
        }
        source->connect(*forth, *back, *sink, start);
        m_sinks.push_back(sink);
        ++counts.flows;
        return source;
    }

    void count(Counts& counts) const {
        for (const TcpSink* sink : m_sinks) {
            counts.delivered_bytes += sink->_packets;
            counts.delivered_packets += sink->_packets / Packet::data_packet_size();
        }
        counts.drops = m_forth.queue.num_drops() + m_back.queue.num_drops();
    }

  private:
    double m_mbit;
    EventList& m_events;
    Direction m_forth;
    Direction m_back;
    std::vector<TcpSink*> m_sinks;
};

void run(EventList& events) {
    while (events.doNextEvent()) {
    }
}

Counts bulk(uint32_t pairs, double mbit, uint32_t packets, double seconds) {
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(seconds));
    Packet::set_packet_size(1500);
    Dumbbell net(mbit, timeFromMs(40), packets, 1500, events);
    TcpRtxTimerScanner timers(timeFromMs(10), events);
    Counts counts;
    for (uint32_t i = 0; i < pairs; ++i) {
        timers.registerTcp(*net.flow(*net.access(), 0, 0, counts));
    }
    run(events);
    net.count(counts);
    return counts;
}

// Starts flows as a Poisson process, with Pareto-distributed sizes. The mean time between starts, the mean
// size and the shape are the same as in Narrows. The random numbers differ.
class Arrivals : public EventSource {
  public:
    Arrivals(Dumbbell& net, double per_second, double mean_bytes, double shape, EventList& events, Counts& counts)
        : EventSource(events, "arrivals"),
          m_net(net),
          m_access(*net.access()),
          m_gap(per_second),
          m_scale(mean_bytes * (shape - 1.0) / shape),
          m_shape(shape),
          m_counts(counts) {
        next();
    }

    void doNextEvent() override {
        const double size = m_scale / std::pow(1.0 - m_unit(m_random), 1.0 / m_shape);
        // htsim sends one packet more than fit into the size, and counts headers as data.
        const auto packets = static_cast<uint64_t>(std::ceil(std::max(size, 1.0) / 1000.0));
        m_net.flow(m_access, packets * 1052 - 1, eventlist().now(), m_counts);
        next();
    }

  private:
    void next() { eventlist().sourceIsPendingRel(*this, timeFromSec(m_gap(m_random))); }

    Dumbbell& m_net;
    Dumbbell::Access& m_access;
    std::mt19937 m_random{1};
    std::exponential_distribution<double> m_gap;
    std::uniform_real_distribution<double> m_unit{0.0, 1.0};
    double m_scale;
    double m_shape;
    Counts& m_counts;
};

Counts short_flows() {
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(10));
    Packet::set_packet_size(1052);
    Dumbbell net(1'000, timeFromMs(100), 8'000, 1052, events);
    Counts counts;
    Arrivals arrivals(net, 2'000.0, 12'500.0, 1.8, events, counts);
    run(events);
    net.count(counts);
    return counts;
}

Counts chain() {
    EventList& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(1));
    Packet::set_packet_size(1500);
    Route route;
    std::vector<Direction*> hops;
    for (int i = 0; i < 5; ++i) {
        hops.push_back(new Direction(10'000, timeFromMs(1), kUnlimited, events));
        route.push_back(&hops.back()->queue);
        route.push_back(&hops.back()->pipe);
    }
    CbrSink sink;
    route.push_back(&sink);
    CbrSrc source(events, speedFromMbps(10'000.0));
    source.connect(route, sink, 0);
    run(events);
    Counts counts;
    counts.flows = 1;
    counts.delivered_packets = sink._received;
    counts.delivered_bytes = sink._cumulative_ack;
    return counts;
}

}  // namespace

int main(int argc, char* argv[]) {
    // htsim prints when a flow starts and ends. A stream in the failed state discards its output
    // without formatting it.
    std::cout.setstate(std::ios::failbit);
    const std::string name = argc == 2 ? argv[1] : "";
    Counts counts;
    if (name == "A") {
        counts = bulk(2, 100, 1000, 60);
    } else if (name == "C") {
        counts = bulk(100, 1'000, 4000, 10);
    } else if (name == "D") {
        counts = short_flows();
    } else if (name == "E") {
        counts = chain();
    } else {
        std::fprintf(stderr, "narrows_bench: found %s, expected A, C, D or E\n", name.empty() ? "no scenario" : argv[1]);
        return 2;
    }
    std::printf("{\"packet_hops\": %llu, \"delivered_packets\": %llu, \"delivered_bytes\": %llu, \"flows\": %llu, "
                "\"drops\": %llu, \"peak_kib\": %llu}\n",
                static_cast<unsigned long long>(g_packet_hops), static_cast<unsigned long long>(counts.delivered_packets),
                static_cast<unsigned long long>(counts.delivered_bytes), static_cast<unsigned long long>(counts.flows),
                static_cast<unsigned long long>(counts.drops), static_cast<unsigned long long>(PeakKib()));
    std::fflush(stdout);
    // Exit without destroying objects, like the program for ns-3.
    std::_Exit(0);
}
