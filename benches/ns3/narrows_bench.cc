// The speed scenarios of crates/narrows-sim/benches/scenarios.rs, in ns-3: `narrows_bench NAME [--scheduler=TYPE]
// [--routing=KIND]` runs one scenario once and prints its counts as one line of JSON. The caller measures the time.
//
// All settings are those with which ns-3 is fastest. Nothing is logged or traced, IPv6 is not installed, and
// devices have no traffic-control layer above their queue. The application writes one segment at a time, so
// that segments are not split or merged in the send buffer. Routes are those that an experienced user would
// choose (see `Routes`). Packets are counted by the counters that ns-3's queues have anyway. The only trace
// is the size of each packet at a receiver, which costs one or two additions per delivery.

#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "../../python/narrows/validate/ns3/network.h"
#include "../peak.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;
using namespace narrows;

namespace {

// The IPv4 header and a TCP header with timestamps: the overhead of a segment in Narrows.
constexpr uint32_t kTcpHeaders = 52;
constexpr uint32_t kUdpHeaders = 28;
// A frame larger than this carries data, because a SYN with all its options has up to 80 bytes. A last segment of
// fewer than 28 bytes is therefore not counted. This affects one flow in forty of the scenarios D and H, and no
// other scenario.
constexpr uint32_t kLargestControlFrame = kTcpHeaders + kPpp + 28;
// The buffer is larger than any window in these scenarios. The largest bottleneck queue and its pipe hold 7300
// segments for 100 flows and 1333 for two, and the largest flow of H has 2.4 MB. The buffer is so small that a bulk
// sender does not fill the memory.
constexpr uint32_t kSocketBuffer = 4 << 20;
constexpr uint16_t kPort = 5000;

// Counts at the end of a run.
struct Tally {
    uint64_t delivered_packets = 0;
    uint64_t delivered_bytes = 0;
    uint64_t flows = 0;
};
Tally g_tally;

// One flow of scenario H, whose completion time is measured. Times are in ns. `end` is 0 until the last byte is
// acknowledged.
struct Transfer {
    uint64_t start;
    uint64_t bytes;
    uint64_t end;
};
std::vector<Transfer> g_transfers;

void CountDelivery(Ptr<const Packet> frame) {
    g_tally.delivered_packets += frame->GetSize() > kLargestControlFrame ? 1 : 0;
}

void Read(Ptr<Socket> socket) {
    while (Ptr<Packet> data = socket->Recv()) {
        g_tally.delivered_bytes += data->GetSize();
    }
}

// Creates a receiver of all data that is sent to a host.
void Listen(const Network& net, uint32_t host, const std::string& factory) {
    Ptr<Socket> socket = Socket::CreateSocket(net.At(host), TypeId::LookupByName(factory));
    socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    socket->SetRecvCallback(MakeCallback(&Read));
    if (factory == "ns3::TcpSocketFactory") {
        socket->Listen();
        socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                  Callback<void, Ptr<Socket>, const Address&>([](Ptr<Socket> s, const Address&) {
                                      s->SetRecvCallback(MakeCallback(&Read));
                                      s->SetCloseCallbacks(
                                          Callback<void, Ptr<Socket>>([](Ptr<Socket> peer) { peer->Close(); }),
                                          MakeNullCallback<void, Ptr<Socket>>());
                                  }));
    }
    // This list holds references to the sockets, so they exist until the simulation ends.
    static std::vector<Ptr<Socket>> s_listeners;
    s_listeners.push_back(socket);
}

void CountAt(Ptr<NetDevice> receiver) {
    receiver->TraceConnectWithoutContext("MacRx", MakeCallback(&CountDelivery));
}

// `pairs` senders (0..pairs) and receivers (pairs..2 pairs) at one bottleneck; each packet takes three hops.
Network Dumbbell(uint32_t pairs, double mbit, Time rtt, uint32_t packets, Routes routes) {
    const uint32_t left = 2 * pairs;
    const uint32_t right = left + 1;
    Network net(right + 1, routes);
    net.Link(left, right, mbit, rtt / 2, packets);
    for (uint32_t i = 0; i < pairs; ++i) {
        net.Link(i, left, 10 * mbit, Time(0), kUnlimited);
        CountAt(net.Link(right, pairs + i, 10 * mbit, Time(0), kUnlimited).Get(1));
    }
    net.Route();
    return net;
}

void TcpDefaults(const std::string& congestion, uint32_t mss) {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(congestion)));
    TcpAsLinux(mss, kSocketBuffer);
    // A finished connection stays in the demultiplexer's list for two of these lifetimes (by default four
    // minutes), and the list is searched for every packet. So the lifetime is short.
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(0.05));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(congestion == "ns3::TcpBbr"));
    Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(mss));
}

Network Bulk(const std::string& congestion, uint32_t pairs, double mbit, uint32_t packets, Routes routes) {
    TcpDefaults(congestion, 1448);
    Network net = Dumbbell(pairs, mbit, MilliSeconds(40), packets, routes);
    for (uint32_t i = 0; i < pairs; ++i) {
        Listen(net, pairs + i, "ns3::TcpSocketFactory");
        BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(net.AddressOf(pairs + i), kPort));
        sender.SetAttribute("MaxBytes", UintegerValue(0));
        sender.Install(net.At(i)).Start(Seconds(0));
    }
    g_tally.flows = pairs;
    return net;
}

// Opens a connection from a node to an address, sends a number of bytes and closes the connection.
Ptr<Socket> Send(Ptr<Node> from, const Address& to, uint32_t bytes, uint32_t segment) {
    Ptr<Socket> socket = Socket::CreateSocket(from, TypeId::LookupByName("ns3::TcpSocketFactory"));
    socket->Bind();
    socket->Connect(to);
    // The buffer accepts all data at once. The data leaves when the connection is established.
    for (uint32_t left = bytes; left > 0;) {
        const uint32_t size = std::min(left, segment);
        socket->Send(Create<Packet>(size));
        left -= size;
    }
    socket->Close();
    return socket;
}

// Connections that arrive as a Poisson process, send a Pareto-distributed number of bytes and close.
class ShortFlows : public SimpleRefCount<ShortFlows> {
  public:
    ShortFlows(Ptr<Node> from, Address to, double per_second, double mean_bytes, double shape)
        : m_from(from), m_to(to) {
        m_gap->SetAttribute("Mean", DoubleValue(1.0 / per_second));
        m_size->SetAttribute("Shape", DoubleValue(shape));
        m_size->SetAttribute("Scale", DoubleValue(mean_bytes * (shape - 1.0) / shape));
    }

    void Next() { Simulator::Schedule(Seconds(m_gap->GetValue()), &ShortFlows::Start, this); }

  private:
    void Start() {
        Next();
        ++g_tally.flows;
        Send(m_from, m_to, std::max(1u, std::min(kSocketBuffer, static_cast<uint32_t>(m_size->GetValue()))), 1000);
    }

    Ptr<Node> m_from;
    Address m_to;
    Ptr<ExponentialRandomVariable> m_gap = CreateObject<ExponentialRandomVariable>();
    Ptr<ParetoRandomVariable> m_size = CreateObject<ParetoRandomVariable>();
};

Network Short(Routes routes) {
    TcpDefaults("ns3::TcpLinuxReno", 1000);
    Network net = Dumbbell(1, 1'000, MilliSeconds(100), 8'000, routes);
    Listen(net, 1, "ns3::TcpSocketFactory");
    static Ptr<ShortFlows> s_source;
    s_source = Create<ShortFlows>(net.At(0), InetSocketAddress(net.AddressOf(1), kPort), 2'000.0, 12'500.0, 1.8);
    s_source->Next();
    return net;
}

// The same random arrivals as in Narrows (crates/narrows-sim/src/engine/random.rs and world/arrivals.rs): PCG32
// (O'Neill 2014, XSH-RR) of seed 1, stream 3 * 2^40. Both sides print a checksum over all flows, which shows
// whether they had the same flows.
class Arrivals {
  public:
    Arrivals(double per_second, double mean_bytes, double shape)
        : m_gap(1.0 / per_second), m_scale(mean_bytes * (shape - 1.0) / shape), m_shape(shape) {
        m_state = (0x9e37'79b9'7f4a'7c15 ^ 0xda3e'39cb'94b9'5bdb) + kIncrement;
        Bits();
    }

    uint64_t GapNs() { return static_cast<uint64_t>(-m_gap * std::log(1.0 - Unit()) * 1e9 + 0.5); }

    uint64_t Bytes() {
        return std::max(static_cast<uint64_t>(m_scale / std::pow(1.0 - Unit(), 1.0 / m_shape)), uint64_t{1});
    }

  private:
    static constexpr uint64_t kIncrement = (uint64_t{3} << 41) | 1;

    uint32_t Bits() {
        const uint64_t old = m_state;
        m_state = old * 6364136223846793005ULL + kIncrement;
        const uint32_t word = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
        const uint32_t turn = static_cast<uint32_t>(old >> 59);
        return (word >> turn) | (word << (-turn & 31));
    }

    double Unit() { return Bits() / 4294967296.0; }

    uint64_t m_state;
    double m_gap;
    double m_scale;
    double m_shape;
};

// Opens connections with the sizes and start times of `Arrivals`, and records their completion times.
class TimedFlows : public SimpleRefCount<TimedFlows> {
  public:
    TimedFlows(Ptr<Node> from, Address to, Arrivals arrivals, uint32_t segment)
        : m_from(from), m_to(to), m_arrivals(arrivals), m_segment(segment) {}

    void Next() { Simulator::Schedule(NanoSeconds(m_arrivals.GapNs()), &TimedFlows::Start, this); }

  private:
    void Start() {
        // The gap after a flow is drawn before the flow's size, as in Narrows.
        Next();
        ++g_tally.flows;
        const uint64_t bytes = m_arrivals.Bytes();
        NS_ABORT_MSG_IF(bytes > kSocketBuffer, "a flow of " << bytes << " bytes does not fit the buffer");
        const size_t index = g_transfers.size();
        g_transfers.push_back({static_cast<uint64_t>(Simulator::Now().GetNanoSeconds()), bytes, 0});
        // At every ACK of new data, ns-3 reports the free space of the send buffer. When the buffer is empty,
        // the last byte has been acknowledged.
        Send(m_from, m_to, static_cast<uint32_t>(bytes), m_segment)
            ->SetSendCallback(Callback<void, Ptr<Socket>, uint32_t>([index](Ptr<Socket>, uint32_t free) {
                if (free == kSocketBuffer && g_transfers[index].end == 0) {
                    g_transfers[index].end = static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
                }
            }));
    }

    Ptr<Node> m_from;
    Address m_to;
    Arrivals m_arrivals;
    uint32_t m_segment;
};

// Payload bytes of B3's packets of 1000 bytes.
constexpr uint32_t kB3Segment = 948;

// B3 of the BDR study (python/narrows/studies/library/bdr/b3.toml, case reno-10) with Reno.
Network B3(Routes routes) {
    TcpDefaults("ns3::TcpLinuxReno", kB3Segment);
    DelayAcksAsLinux();
    Network net(4, routes, 1000.0);
    net.Link(0, 1, 2'400, Time(0), kUnlimited);
    net.Link(1, 2, 1'000, MilliSeconds(25), 5000);
    CountAt(net.Link(2, 3, 2'400, MilliSeconds(25), 1000).Get(1));
    net.Route();
    Listen(net, 3, "ns3::TcpSocketFactory");
    static Ptr<TimedFlows> s_source;
    s_source = Create<TimedFlows>(net.At(0), InetSocketAddress(net.AddressOf(3), kPort),
                                  Arrivals(2'000.0, 11'850.0, 1.8), kB3Segment);
    s_source->Next();
    return net;
}

// Completion times of H with the definitions of crates/narrows-sim/benches/scenarios.rs: flows that start within three
// seconds of the start or the end of the run are left out. Short flows have up to 30 packets, long flows 100 or more.
void PrintCompletions(double seconds) {
    const uint64_t margin = 3'000'000'000;
    const uint64_t duration = static_cast<uint64_t>(seconds * 1e9);
    uint64_t workload = 0, begun = 0, finished = 0, bytes = 0;
    uint64_t all_ns = 0, shorts = 0, short_ns = 0, longs = 0, long_ns = 0;
    for (const Transfer& t : g_transfers) {
        workload += t.start * t.bytes;
        if (t.start < margin || t.start + margin >= duration) {
            continue;
        }
        ++begun;
        if (t.end == 0) {
            continue;
        }
        const uint64_t ns = t.end - t.start;
        const uint64_t packets = (t.bytes + kB3Segment - 1) / kB3Segment;
        ++finished;
        bytes += t.bytes;
        all_ns += ns;
        if (packets <= 30) {
            ++shorts;
            short_ns += ns;
        } else if (packets >= 100) {
            ++longs;
            long_ns += ns;
        }
    }
    std::cout << ", \"workload\": " << workload << ", \"begun\": " << begun << ", \"finished\": " << finished
              << ", \"finished_bytes\": " << bytes << ", \"fct_ns\": " << all_ns << ", \"short\": " << shorts
              << ", \"short_fct_ns\": " << short_ns << ", \"long\": " << longs << ", \"long_fct_ns\": " << long_ns;
}

// Sends datagrams of constant size at a constant rate with a socket and a timer. This is cheaper than ns-3's
// own applications.
struct Pulse {
    static void Send(Ptr<Socket> socket, uint32_t payload, Time gap) {
        socket->Send(Create<Packet>(payload));
        Simulator::Schedule(gap, &Pulse::Send, socket, payload, gap);
    }
};

Network Chain(uint32_t hops, Time delay, Routes routes) {
    Network net(hops + 1, routes);
    for (uint32_t i = 0; i < hops; ++i) {
        NetDeviceContainer devices = net.Link(i, i + 1, 10'000, delay, 1000);
        if (i + 1 == hops) {
            CountAt(devices.Get(1));
        }
    }
    net.Route();
    Listen(net, hops, "ns3::UdpSocketFactory");
    Ptr<Socket> socket = Socket::CreateSocket(net.At(0), TypeId::LookupByName("ns3::UdpSocketFactory"));
    socket->Bind();
    socket->Connect(InetSocketAddress(net.AddressOf(hops), kPort));
    Simulator::Schedule(Time(0), &Pulse::Send, socket, 1500 - kUdpHeaders, NanoSeconds(1200));
    g_tally.flows = 1;
    return net;
}

struct Scenario {
    double seconds;
    std::function<Network(Routes)> build;
};

}  // namespace

int main(int argc, char* argv[]) {
    const std::map<std::string, Scenario> scenarios = {
        {"A", {60, [](Routes r) { return Bulk("ns3::TcpCubic", 2, 100, 1000, r); }}},
        {"B", {60, [](Routes r) { return Bulk("ns3::TcpBbr", 2, 100, 1000, r); }}},
        {"C", {10, [](Routes r) { return Bulk("ns3::TcpCubic", 100, 1'000, 4000, r); }}},
        {"D", {10, [](Routes r) { return Short(r); }}},
        {"E", {1, [](Routes r) { return Chain(5, MilliSeconds(1), r); }}},
        {"G", {1, [](Routes r) { return Chain(1, Seconds(1), r); }}},
        {"H", {30, [](Routes r) { return B3(r); }}},
    };
    std::string name;
    std::string scheduler = "ns3::MapScheduler";
    std::string routing = "nix";
    CommandLine arguments(__FILE__);
    arguments.AddNonOption("scenario", "A to E, G or H", name);
    arguments.AddValue("scheduler", "TypeId of the event scheduler", scheduler);
    arguments.AddValue("routing", "nix or global", routing);
    arguments.Parse(argc, argv);
    const auto found = scenarios.find(name);
    if (found == scenarios.end() || (routing != "nix" && routing != "global")) {
        std::cerr << "narrows_bench: no such scenario or routing; see --help\n";
        return 2;
    }
    GlobalValue::Bind("SchedulerType", TypeIdValue(TypeId::LookupByName(scheduler)));
    const Network net = found->second.build(routing == "nix" ? Routes::kNix : Routes::kGlobal);
    Simulator::Stop(Seconds(found->second.seconds));
    Simulator::Run();
    std::cout << "{\"events\": " << Simulator::GetEventCount() << ", \"packet_hops\": " << net.PacketHops()
              << ", \"delivered_packets\": " << g_tally.delivered_packets << ", \"flows\": " << g_tally.flows
              << ", \"drops\": " << net.Drops() << ", \"delivered_bytes\": " << g_tally.delivered_bytes
              << ", \"peak_kib\": " << PeakKib();
    PrintCompletions(found->second.seconds);
    std::cout << "}" << std::endl;
    // No Simulator::Destroy(): destroying objects is not part of the simulation, and Narrows does not do it either.
    std::_Exit(0);
}
