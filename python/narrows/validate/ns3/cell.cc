// One cell of `narrows validate` in ns-3: prints each flow's figures as JSON. What a cell is: ../grid.py.
//
// The same network as ours: rate and drop-tail queue at r1, delay and random loss behind it, access links ten times as
// fast. Where ns-3 leaves a choice, Linux's is taken: SACK, timestamps, an initial window of 10, delayed ACKs for two
// segments, a timeout of at least 200 ms, no pacing but BBR's. Sampled as ours: windows every 50 ms, RTTs at each ACK.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

constexpr uint32_t kMss = 1448;
constexpr uint32_t kFullPacket = 1500;
// A point-to-point frame carries two bytes of PPP; rates are raised so that a full packet takes the same time.
constexpr uint32_t kPpp = 2;
constexpr uint32_t kEndless = 1 << 20;
constexpr uint16_t kPort = 5000;
// The far flow's RTT over the near one's (grid.py, FARTHER).
constexpr int kFarther = 5;
const Time kSample = MilliSeconds(50);

const std::map<std::string, std::string> kTypes = {
    {"bbr", "ns3::TcpBbr"},           {"bic", "ns3::TcpBic"},         {"cubic", "ns3::TcpCubic"},
    {"dctcp", "ns3::TcpDctcp"},       {"highspeed", "ns3::TcpHighSpeed"}, {"htcp", "ns3::TcpHtcp"},
    {"hybla", "ns3::TcpHybla"},       {"illinois", "ns3::TcpIllinois"}, {"lp", "ns3::TcpLp"},
    {"reno", "ns3::TcpLinuxReno"},    {"scalable", "ns3::TcpScalable"}, {"vegas", "ns3::TcpVegas"},
    {"veno", "ns3::TcpVeno"},         {"westwood", "ns3::TcpWestwoodPlus"}, {"yeah", "ns3::TcpYeah"},
};

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

// A flow and what is counted of it. Bytes and RTTs are those after the warm-up, segments those of the whole run.
struct Flow {
    std::string name;
    Ptr<TcpSocketBase> socket;
    uint64_t delivered = 0;
    uint64_t sent = 0;
    uint64_t resent = 0;
    SequenceNumber32 highest{0};
    bool begun = false;
    uint32_t cwnd = 0;
    std::vector<double> rtts;
    std::vector<double> windows;
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

void OnRtt(size_t index, Time, Time rtt) {
    if (Simulator::Now() >= g_warmup) {
        g_flows[index].rtts.push_back(rtt.GetSeconds());
    }
}

void OnWindow(size_t index, uint32_t, uint32_t cwnd) { g_flows[index].cwnd = cwnd; }

void Sample() {
    for (Flow& flow : g_flows) {
        if (Simulator::Now() > g_warmup) {
            flow.windows.push_back(static_cast<double>(flow.cwnd) / kMss);
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
    static std::vector<Ptr<Socket>> s_listeners;  // they live as long as the simulation
    s_listeners.push_back(socket);
}

// Keeps the send buffer full.
void Fill(Ptr<Socket> socket, uint32_t) {
    while (socket->GetTxAvailable() >= kMss && socket->Send(Create<Packet>(kMss)) > 0) {
    }
}

void Start(Ptr<Node> from, Address to, const std::string& algorithm, size_t index) {
    Config::Set("/NodeList/" + std::to_string(from->GetId()) + "/$ns3::TcpL4Protocol/SocketType",
                TypeIdValue(TypeId::LookupByName(kTypes.at(algorithm))));
    auto socket = DynamicCast<TcpSocketBase>(Socket::CreateSocket(from, TcpSocketFactory::GetTypeId()));
    socket->SetAttribute("SegmentSize", UintegerValue(kMss));
    if (algorithm == "bbr") {
        socket->SetPacingStatus(true);
    }
    if (algorithm == "dctcp") {
        socket->SetUseEcn(TcpSocketState::On);
    }
    g_flows[index].socket = socket;
    socket->TraceConnectWithoutContext(
        "Tx", Callback<void, Ptr<const Packet>, const TcpHeader&, Ptr<const TcpSocketBase>>(
                  [index](Ptr<const Packet> p, const TcpHeader& h, Ptr<const TcpSocketBase> s) {
                      OnSent(index, p, h, s);
                  }));
    socket->TraceConnectWithoutContext(
        "RTT", Callback<void, Time, Time>([index](Time before, Time now) { OnRtt(index, before, now); }));
    socket->TraceConnectWithoutContext(
        "CongestionWindow",
        Callback<void, uint32_t, uint32_t>([index](uint32_t a, uint32_t b) { OnWindow(index, a, b); }));
    socket->Bind();
    socket->SetSendCallback(MakeCallback(&Fill));
    socket->SetConnectCallback(Callback<void, Ptr<Socket>>([](Ptr<Socket> s) { Fill(s, 0); }),
                               MakeNullCallback<void, Ptr<Socket>>());
    socket->Connect(to);
}

class Network {
  public:
    explicit Network(uint32_t nodes) {
        m_nodes.Create(nodes);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.Install(m_nodes);
        m_addresses.SetBase("10.0.0.0", "255.255.255.252");
    }

    NetDeviceContainer Link(uint32_t a, uint32_t b, double mbit, Time delay, uint32_t packets) {
        const double framed = mbit * 1e6 * (kFullPacket + kPpp) / kFullPacket;
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(framed))));
        helper.SetChannelAttribute("Delay", TimeValue(delay));
        helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
        helper.DisableFlowControl();  // or there would be an FqCoDel above the device's queue
        NetDeviceContainer devices = helper.Install(m_nodes.Get(a), m_nodes.Get(b));
        Ipv4InterfaceContainer interfaces = m_addresses.Assign(devices);
        m_addresses.NewNetwork();
        m_address[b] = interfaces.GetAddress(1);
        return devices;
    }

    Ptr<Node> At(uint32_t node) const { return m_nodes.Get(node); }
    Ipv4Address AddressOf(uint32_t node) const { return m_address.at(node); }

  private:
    NodeContainer m_nodes;
    Ipv4AddressHelper m_addresses;
    std::map<uint32_t, Ipv4Address> m_address;
};

double Quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

double Mean(const std::vector<double>& values) {
    double sum = 0;
    for (double value : values) {
        sum += value;
    }
    return sum / static_cast<double>(values.size());
}

// A number as JSON has it; null for none.
std::string Number(const std::vector<double>& values, double (*of)(const std::vector<double>&)) {
    return values.empty() ? "null" : std::to_string(of(values));
}

void Print(const Options& options) {
    std::cout << "[";
    for (const Flow& flow : g_flows) {
        const double bits = 8.0 * static_cast<double>(flow.delivered);
        std::cout << (&flow == g_flows.data() ? "" : ",") << "{\"name\":\"" << flow.name << "\",\"goodput_bps\":"
                  << bits / (options.duration - options.warmup) << ",\"rtt_mean_s\":" << Number(flow.rtts, Mean)
                  << ",\"rtt_p95_s\":"
                  << Number(flow.rtts, [](const std::vector<double>& v) { return Quantile(v, 0.95); })
                  << ",\"sent\":" << flow.sent << ",\"resent\":" << flow.resent << ",\"windows\":[";
        for (size_t i = 0; i < flow.windows.size(); ++i) {
            std::cout << (i ? "," : "") << flow.windows[i];
        }
        std::cout << "]}";
    }
    std::cout << "]\n";
}

void Defaults(const Options& options) {
    const double rtt = options.rtt * (options.flows == "rtts" ? kFarther : 1) / 1e3;
    const double most = options.rate * 1e6 / 8 * rtt + options.queue * kFullPacket;
    const auto buffer = static_cast<uint32_t>(std::max(4e6, 4 * most));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kMss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
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
    line.AddValue("algorithm", "as Linux calls it", options.algorithm);
    line.AddValue("rate", "Mbit/s", options.rate);
    line.AddValue("rtt", "ms", options.rtt);
    line.AddValue("queue", "packets", options.queue);
    line.AddValue("loss", "%", options.loss);
    line.AddValue("flows", "single, cubic or rtts", options.flows);
    line.AddValue("duration", "s", options.duration);
    line.AddValue("warmup", "s", options.warmup);
    line.AddValue("seed", "of random losses", options.seed);
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
    Network net(2 + 2 * static_cast<uint32_t>(flows.size()));
    NetDeviceContainer tight = net.Link(0, 1, options.rate, one_way, options.queue);
    if (options.loss > 0) {
        Ptr<RateErrorModel> model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(options.loss / 100);
        DynamicCast<PointToPointNetDevice>(tight.Get(1))->SetReceiveErrorModel(model);
    }
    Ptr<UniformRandomVariable> start = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < flows.size(); ++i) {
        const auto [name, algorithm] = flows[i];
        const uint32_t sender = 2 + 2 * i;
        g_flows[i].name = name;
        net.Link(sender, 0, 10 * options.rate, Time(0), kEndless);
        net.Link(1, sender + 1, 10 * options.rate, name == "far" ? (kFarther - 1) * one_way : Time(0), kEndless);
        Listen(net.At(sender + 1), i);
        // As much as our scenarios' hosts add.
        Simulator::Schedule(MicroSeconds(start->GetInteger(0, 50)), [&net, i, sender, algorithm]() {
            Start(net.At(sender), InetSocketAddress(net.AddressOf(sender + 1), kPort), algorithm, i);
        });
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(kSample, &Sample);
    Simulator::Stop(Seconds(options.duration));
    Simulator::Run();
    Print(options);
    Simulator::Destroy();
    return 0;
}
