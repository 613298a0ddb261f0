// Runs a cell of `narrows validate` (see ../grid.py) in ns-3, and prints each flow's figures as JSON.
//
// The network is the same as in our simulator. The rate and the drop-tail queue are at r1, the delay and the random
// loss behind r1. Access links and the reverse path are ten times as fast. The reverse path has a random delay. TCP is
// configured like Linux's (network.h), and only BBR is paced. Samples are also the same. Every 50 ms they contain the
// window, the smoothed RTT and the data delivered since the last sample.
//
// One thing differs: ns-3 takes RTTs from timestamps in whole milliseconds, Linux from timestamps in microseconds. The
// error of a sample is up to 1 ms in both directions, and zero on average.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "network.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;
using namespace narrows;

namespace {

constexpr uint32_t kMss = 1448;
constexpr uint32_t kFullPacket = 1500;
constexpr uint16_t kPort = 5000;
// Ratio of the far flow's RTT to the near flow's RTT (grid.py, FARTHER).
constexpr int kFarther = 5;
// Time from the start of the second flow to the start of the first flow (grid.py, LATER).
const Time kLater = MilliSeconds(5);
const Time kSample = MilliSeconds(50);

const std::map<std::string, std::string> kTypes = {
    {"bbr", "ns3::TcpBbr"},           {"bic", "ns3::TcpBic"},         {"cubic", "ns3::TcpCubic"},
    {"dctcp", "ns3::TcpDctcp"},       {"highspeed", "ns3::TcpHighSpeed"}, {"htcp", "ns3::TcpHtcp"},
    {"hybla", "ns3::TcpHybla"},       {"illinois", "ns3::TcpIllinois"}, {"lp", "ns3::TcpLp"},
    {"reno", "ns3::TcpLinuxReno"},    {"scalable", "ns3::TcpScalable"}, {"vegas", "ns3::TcpVegas"},
    {"veno", "ns3::TcpVeno"},         {"westwood", "ns3::TcpWestwoodPlus"}, {"yeah", "ns3::TcpYeah"},
};

// The type of an algorithm. Westwood+ is a kind of Westwood in ns-3 3.37, and a separate type in later versions.
TypeId TypeOf(const std::string& algorithm) {
    TypeId type;
    if (const auto known = kTypes.find(algorithm);
        known != kTypes.end() && TypeId::LookupByNameFailSafe(known->second, &type)) {
        return type;
    }
    if (algorithm == "westwood" && TypeId::LookupByNameFailSafe("ns3::TcpWestwood", &type)) {
        Config::SetDefault("ns3::TcpWestwood::ProtocolType", StringValue("WestwoodPlus"));
        return type;
    }
    std::cerr << "found " << algorithm << ", expected an algorithm that ns-3 has\n";
    std::exit(1);
}

struct Options {
    std::string algorithm = "reno";
    double rate = 20;      // Mbit/s, L3
    double rtt = 20;       // ms
    uint32_t queue = 33;   // packets
    double loss = 0;       // %
    std::string flows = "single";
    double duration = 30;  // s
    double warmup = 3;     // s
    uint32_t seed = 1;
};

// A flow and its counters: segments of the whole run, and bytes and samples after the warm-up.
struct Flow {
    std::string name;
    Ptr<TcpSocketBase> socket;
    uint64_t delivered = 0;
    uint64_t sent = 0;
    uint64_t resent = 0;
    SequenceNumber32 highest{0};
    bool begun = false;
    uint32_t cwnd = 0;
    // The smoothed RTT of ns-3. Its gain is that of RFC 6298 (1/8), as in Linux.
    Ptr<RttEstimator> rtt;
    uint64_t delivered_before = 0;
    std::vector<double> windows;
    std::vector<double> rtts;
    std::vector<double> bytes;
};
std::vector<Flow> g_flows;
Time g_warmup;

void OnSent(size_t index, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    if (packet->GetSize() == 0) {
        return;
    }
    Flow& flow = g_flows[index];
    ++flow.sent;
    if (flow.begun && header.GetSequenceNumber() < flow.highest) {
        ++flow.resent;
    } else {
        flow.highest = header.GetSequenceNumber() + packet->GetSize();
        flow.begun = true;
    }
}

void OnWindow(size_t index, uint32_t, uint32_t cwnd) { g_flows[index].cwnd = cwnd; }

void Sample() {
    for (Flow& flow : g_flows) {
        if (Simulator::Now() > g_warmup) {
            flow.windows.push_back(static_cast<double>(flow.cwnd) / kMss);
            flow.rtts.push_back(flow.rtt->GetEstimate().GetSeconds());
            flow.bytes.push_back(static_cast<double>(flow.delivered - flow.delivered_before));
            flow.delivered_before = flow.delivered;
        }
    }
    Simulator::Schedule(kSample, &Sample);
}

void Listen(Ptr<Node> host, size_t index) {
    Ptr<Socket> socket = Socket::CreateSocket(host, TcpSocketFactory::GetTypeId());
    socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    socket->Listen();
    socket->SetAcceptCallback(
        MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
        Callback<void, Ptr<Socket>, const Address&>([index](Ptr<Socket> accepted, const Address&) {
            accepted->SetRecvCallback(Callback<void, Ptr<Socket>>([index](Ptr<Socket> s) {
                while (Ptr<Packet> data = s->Recv()) {
                    if (Simulator::Now() >= g_warmup) {
                        g_flows[index].delivered += data->GetSize();
                    }
                }
            }));
        }));
    static std::vector<Ptr<Socket>> s_listeners;  // keeps the listeners until the simulation ends
    s_listeners.push_back(socket);
}

// Keeps the send buffer full.
void Fill(Ptr<Socket> socket, uint32_t) {
    while (socket->GetTxAvailable() >= kMss && socket->Send(Create<Packet>(kMss)) > 0) {
    }
}

void Start(Ptr<Node> from, Address to, const std::string& algorithm, size_t index) {
    Config::Set("/NodeList/" + std::to_string(from->GetId()) + "/$ns3::TcpL4Protocol/SocketType",
                TypeIdValue(TypeOf(algorithm)));
    auto socket = DynamicCast<TcpSocketBase>(Socket::CreateSocket(from, TcpSocketFactory::GetTypeId()));
    socket->SetAttribute("SegmentSize", UintegerValue(kMss));
    if (algorithm == "bbr") {
        socket->SetPacingStatus(true);
    }
    if (algorithm == "dctcp") {
        socket->SetUseEcn(TcpSocketState::On);
    }
    g_flows[index].socket = socket;
    g_flows[index].rtt = CreateObject<RttMeanDeviation>();
    socket->SetRtt(g_flows[index].rtt);
    socket->TraceConnectWithoutContext(
        "Tx", Callback<void, Ptr<const Packet>, const TcpHeader&, Ptr<const TcpSocketBase>>(
                  [index](Ptr<const Packet> p, const TcpHeader& h, Ptr<const TcpSocketBase> s) {
                      OnSent(index, p, h, s);
                  }));
    socket->TraceConnectWithoutContext(
        "CongestionWindow",
        Callback<void, uint32_t, uint32_t>([index](uint32_t a, uint32_t b) { OnWindow(index, a, b); }));
    socket->Bind();
    socket->SetSendCallback(MakeCallback(&Fill));
    socket->SetConnectCallback(Callback<void, Ptr<Socket>>([](Ptr<Socket> s) { Fill(s, 0); }),
                               MakeNullCallback<void, Ptr<Socket>>());
    socket->Connect(to);
}

// Formats a value as JSON, with `name` before it.
std::string List(const std::string& name, const std::vector<double>& values) {
    std::string text = ",\"" + name + "\":[";
    for (size_t i = 0; i < values.size(); ++i) {
        text += (i ? "," : "") + std::to_string(values[i]);
    }
    return text + "]";
}

void Print(const Options& options) {
    std::cout << "[";
    for (const Flow& flow : g_flows) {
        const double bits = 8.0 * static_cast<double>(flow.delivered);
        std::cout << (&flow == g_flows.data() ? "" : ",") << "{\"name\":\"" << flow.name << "\",\"goodput_bps\":"
                  << bits / (options.duration - options.warmup) << ",\"sent\":" << flow.sent
                  << ",\"resent\":" << flow.resent << List("windows", flow.windows) << List("srtts_s", flow.rtts)
                  << List("bytes", flow.bytes) << "}";
    }
    std::cout << "]\n";
}

void Defaults(const Options& options) {
    const double rtt = options.rtt * (options.flows == "rtts" ? kFarther : 1) / 1e3;
    const double most = options.rate * 1e6 / 8 * rtt + options.queue * kFullPacket;
    const auto buffer = static_cast<uint32_t>(std::max(4e6, 4 * most));
    TcpAsLinux(kMss, buffer);
    DelayAcksAsLinux();
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName("ns3::TcpPrrRecovery")));
    if (options.algorithm == "dctcp") {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }
    RngSeedManager::SetRun(options.seed);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CommandLine line;
    line.AddValue("algorithm", "name of the algorithm in Linux", options.algorithm);
    line.AddValue("rate", "Mbit/s", options.rate);
    line.AddValue("rtt", "ms", options.rtt);
    line.AddValue("queue", "packets", options.queue);
    line.AddValue("loss", "%", options.loss);
    line.AddValue("flows", "single, cubic or rtts", options.flows);
    line.AddValue("duration", "s", options.duration);
    line.AddValue("warmup", "s", options.warmup);
    line.AddValue("seed", "seed of random losses", options.seed);
    line.Parse(argc, argv);
    Defaults(options);
    g_warmup = Seconds(options.warmup);

    std::vector<std::pair<std::string, std::string>> flows = {{"near", options.algorithm}};
    if (options.flows == "cubic") {
        flows.emplace_back("rival", "cubic");
    } else if (options.flows == "rtts") {
        flows.emplace_back("far", options.algorithm);
    }
    g_flows.resize(flows.size());
    const Time one_way = NanoSeconds(static_cast<uint64_t>(options.rtt * 5e5));
    Network net(2 + 2 * static_cast<uint32_t>(flows.size()), Routes::kGlobal, kFullPacket);
    NetDeviceContainer tight = net.Link(0, 1, options.rate, one_way, options.queue);
    const double packet_us = kFullPacket * 8 / options.rate;
    net.Back(tight, 10 * options.rate, one_way, MicroSeconds(static_cast<uint64_t>(packet_us)));
    if (options.loss > 0) {
        Ptr<RateErrorModel> model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(options.loss / 100);
        DynamicCast<PointToPointNetDevice>(tight.Get(1))->SetReceiveErrorModel(model);
    }
    for (uint32_t i = 0; i < flows.size(); ++i) {
        const auto [name, algorithm] = flows[i];
        const uint32_t sender = 2 + 2 * i;
        g_flows[i].name = name;
        net.Link(sender, 0, 10 * options.rate, Time(0), kUnlimited);
        net.Link(1, sender + 1, 10 * options.rate, name == "far" ? (kFarther - 1) * one_way : Time(0), kUnlimited);
        Listen(net.At(sender + 1), i);
        const Time start = i == 0 && flows.size() > 1 ? kLater : Time(0);
        Simulator::Schedule(start, [&net, i, sender, algorithm]() {
            Start(net.At(sender), InetSocketAddress(net.AddressOf(sender + 1), kPort), algorithm, i);
        });
    }
    net.Route();
    Simulator::Schedule(kSample, &Sample);
    Simulator::Stop(Seconds(options.duration));
    Simulator::Run();
    Print(options);
    Simulator::Destroy();
    return 0;
}
