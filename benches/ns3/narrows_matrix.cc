// A cell of `narrows matrix` in ns-3: `narrows_matrix FIRST SECOND --mbit=100 --rtt=40 --packets=333 --seconds=60` runs
// two flows of these algorithms (TypeIds) over one bottleneck and prints the goodput of each as a line of JSON.
// The caller measures the time. narrows_bench.cc describes the common settings and the choices for ns-3.

#include <cstdint>
#include <iostream>
#include <string>

#include "../../python/narrows/validate/ns3/network.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"

using namespace ns3;
using namespace narrows;

namespace {

constexpr uint32_t kMss = 1448;
// Size of a socket's buffer in bytes, larger than any window with a bottleneck buffer of 4 BDP.
constexpr uint32_t kSocketBuffer = 16 << 20;
constexpr uint16_t kPort = 5000;
// Part of the run before the measurement starts, like the warm-up in Narrows.
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
    // The first sender's link is created first, so the first sender has the lower address.
    static uint32_t s_first = InetSocketAddress::ConvertFrom(from).GetIpv4().Get();
    const uint32_t address = InetSocketAddress::ConvertFrom(from).GetIpv4().Get();
    s_first = std::min(s_first, address);
    Count(socket, address == s_first ? 0 : 1);
}

void Defaults() {
    TcpAsLinux(kMss, kSocketBuffer);
    DelayAcksAsLinux();
    Config::SetDefault("ns3::BulkSendApplication::SendSize", UintegerValue(kMss));
}

// A bulk flow with this algorithm from one sender, from `start` on.
void Flow(const Network& net, Place from, const std::string& congestion, Time start) {
    const TypeIdValue type(TypeId::LookupByName(congestion));
    net.At(from)->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", type);
    // Only BBR paces. A socket reads this default when it is created, at the start of the application.
    BulkSendHelper sender("ns3::TcpSocketFactory", InetSocketAddress(net.AddressOf(kReceiver), kPort));
    sender.SetAttribute("MaxBytes", UintegerValue(0));
    Simulator::Schedule(start - NanoSeconds(1), [congestion] {
        Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(congestion == "ns3::TcpBbr"));
    });
    sender.Install(net.At(from)).Start(start);
}

}  // namespace

int main(int argc, char* argv[]) {
    std::string first, second;
    double mbit = 100, rtt_ms = 40, seconds = 60;
    uint32_t packets = 333;
    CommandLine arguments(__FILE__);
    arguments.AddNonOption("first", "TypeId of the first flow's congestion control", first);
    arguments.AddNonOption("second", "TypeId of the second flow's congestion control", second);
    arguments.AddValue("mbit", "rate of the bottleneck", mbit);
    arguments.AddValue("rtt", "two-way propagation delay, ms", rtt_ms);
    arguments.AddValue("packets", "queue of the bottleneck", packets);
    arguments.AddValue("seconds", "length of the run", seconds);
    arguments.Parse(argc, argv);
    Defaults();
    Network net(kPlaces, Routes::kNix);
    net.Link(kFirst, kLeft, 10 * mbit, Time(0), kUnlimited);
    net.Link(kSecond, kLeft, 10 * mbit, Time(0), kUnlimited);
    net.Link(kLeft, kRight, mbit, MicroSeconds(static_cast<uint64_t>(rtt_ms * 500)), packets);
    net.Link(kRight, kReceiver, 10 * mbit, Time(0), kUnlimited);
    Ptr<Socket> listener = Socket::CreateSocket(net.At(kReceiver), TypeId::LookupByName("ns3::TcpSocketFactory"));
    listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), kPort));
    listener->Listen();
    listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                Callback<void, Ptr<Socket>, const Address&>([](Ptr<Socket> s, const Address&) {
                                    s->SetRecvCallback(MakeCallback(&Read));
                                }));
    Flow(net, kFirst, first, MicroSeconds(1));
    // The second flow starts later by the host jitter of a cell in Narrows, so that the flows are not
    // synchronized.
    Flow(net, kSecond, second, MicroSeconds(51));
    Simulator::Schedule(Seconds(kWarmUp * seconds), [] { g_bytes[0] = g_bytes[1] = 0; });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const double span = (1 - kWarmUp) * seconds;
    std::cout << "{\"events\": " << Simulator::GetEventCount() << ", \"first_bps\": " << 8.0 * g_bytes[0] / span
              << ", \"second_bps\": " << 8.0 * g_bytes[1] / span << "}" << std::endl;
    // No Simulator::Destroy(): destroying objects is not part of the simulation, and Narrows does not do it either.
    std::_Exit(0);
}
