// A cell of `narrows matrix` in ns-3: `narrows_matrix FIRST SECOND --mbit=100 --rtt=40 --packets=333 --seconds=60` runs
// two flows of these congestion controls (TypeIds) over one bottleneck and prints each one's goodput as a line of JSON.
// Timing is left to the caller. What is the same as in our cell and where ns-3 gets the cheaper choice stands in
// narrows_bench.cc.

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

constexpr uint32_t kMss = 1448;
// A frame has two bytes of PPP, which our links do not have: rates are raised by as much.
constexpr double kFramed = 1502.0 / 1500.0;
// More than any window reaches behind 4 BDP.
constexpr uint32_t kSocketBuffer = 16 << 20;
constexpr uint16_t kPort = 5000;
constexpr uint32_t kUnlimited = 1 << 20;
// Of a run: what is left out at its beginning, as our warm-up.
constexpr double kWarmUp = 0.1;

// Nodes: two senders, two routers, one receiver.
enum Place : uint32_t { kFirst, kSecond, kLeft, kRight, kReceiver, kPlaces };

uint64_t g_bytes[2] = {0, 0};

void Count(Ptr<Socket> socket, uint32_t flow) {
    while (Ptr<Packet> data = socket->Recv()) {
        g_bytes[flow] += data->GetSize();
    }
}

void Read(Ptr<Socket> socket) {
    Address from;
    socket->GetPeerName(from);
    // The first sender's link was made first, so that its address is the smaller one.
    static uint32_t s_first = InetSocketAddress::ConvertFrom(from).GetIpv4().Get();
    const uint32_t address = InetSocketAddress::ConvertFrom(from).GetIpv4().Get();
    s_first = std::min(s_first, address);
    Count(socket, address == s_first ? 0 : 1);
}

Ipv4Address Link(const NodeContainer& nodes, Ipv4AddressHelper& addresses, Place a, Place b, double mbit, Time delay,
                 uint32_t packets) {
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(mbit * 1e6 * kFramed))));
    helper.SetChannelAttribute("Delay", TimeValue(delay));
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                    QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
    helper.DisableFlowControl();
    const Ipv4InterfaceContainer made = addresses.Assign(helper.Install(nodes.Get(a), nodes.Get(b)));
    addresses.NewNetwork();
    return made.GetAddress(1);
}

void Defaults() {
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kMss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(kMss));
}

// A bulk flow of this congestion control from one sender, from `start` on.
void Flow(const NodeContainer& nodes, Place from, const std::string& congestion, Ipv4Address to, Time start) {
    const TypeIdValue type(TypeId::LookupByName(congestion));
    nodes.Get(from)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", type);
    // BBR paces, the others do not; a socket takes the default when it is made, at the start of the application.
    BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(to, kPort));
    sender.SetAttribute("MaxBytes", UintegerValue(0));
    Simulator::Schedule(start - NanoSeconds(1), [congestion] {
        Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(congestion == "ns3::TcpBbr"));
    });
    sender.Install(nodes.Get(from)).Start(start);
}

}  // namespace

int main(int argc, char* argv[]) {
    std::string first, second;
    double mbit = 100, rtt_ms = 40, seconds = 60;
    uint32_t packets = 333;
    CommandLine arguments(__FILE__);
    arguments.AddNonOption("first", "TypeId of the first flow's congestion control", first);
    arguments.AddNonOption("second", "TypeId of the second's", second);
    arguments.AddValue("mbit", "rate of the bottleneck", mbit);
    arguments.AddValue("rtt", "two-way propagation delay, ms", rtt_ms);
    arguments.AddValue("packets", "queue of the bottleneck", packets);
    arguments.AddValue("seconds", "length of the run", seconds);
    arguments.Parse(argc, argv);
    Defaults();
    NodeContainer nodes;
    nodes.Create(kPlaces);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4NixVectorHelper());
    stack.Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.252");
    Link(nodes, addresses, kFirst, kLeft, 10 * mbit, Time(0), kUnlimited);
    Link(nodes, addresses, kSecond, kLeft, 10 * mbit, Time(0), kUnlimited);
    Link(nodes, addresses, kLeft, kRight, mbit, MicroSeconds(static_cast<uint64_t>(rtt_ms * 500)), packets);
    const Ipv4Address to =
        Link(nodes, addresses, kRight, kReceiver, 10 * mbit, Time(0), kUnlimited);
    Ptr<Socket> listener = Socket::CreateSocket(nodes.Get(kReceiver), TypeId::LookupByName("ns3::TcpSocketFactory"));
    listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    listener->Listen();
    listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                Callback<void, Ptr<Socket>, const Address&>([](Ptr<Socket> s, const Address&) {
                                    s->SetRecvCallback(MakeCallback(&Read));
                                }));
    Flow(nodes, kFirst, first, to, MicroSeconds(1));
    // Apart by what host jitter is in our cell, so that they are not in lock-step.
    Flow(nodes, kSecond, second, to, MicroSeconds(51));
    Simulator::Schedule(Seconds(kWarmUp * seconds), [] { g_bytes[0] = g_bytes[1] = 0; });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const double span = (1 - kWarmUp) * seconds;
    std::cout << "{\"events\": " << Simulator::GetEventCount() << ", \"first_bps\": " << 8.0 * g_bytes[0] / span
              << ", \"second_bps\": " << 8.0 * g_bytes[1] / span << "}" << std::endl;
    // No Simulator::Destroy(): tearing down objects is no part of simulating, and ours does not pay for it either.
    std::_Exit(0);
}
