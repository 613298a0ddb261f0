// Code that our ns-3 programs (cell.cc, benches/ns3) share: links like our simulator's, and TCP like Linux's.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"

namespace narrows {

using namespace ns3;

// A point-to-point frame of ns-3 carries two bytes of PPP. Our links have no such bytes. Rates in ns-3 are raised in
// proportion, so a full packet takes the same time in both simulators.
constexpr uint32_t kPpp = 2;
// Limit in packets of a queue that never drops.
constexpr uint32_t kUnlimited = 1 << 20;

// How routers find the next hop. For each packet, static and global routing search a list with one route for each host
// behind the router. A nix vector is computed once for each pair of hosts and then read bit by bit.
enum class Routes { kGlobal, kNix };

// A link that delays the packets of one of its devices by a random time up to `most`, and keeps their order.
class JitterChannel : public PointToPointChannel {
  public:
    JitterChannel(Ptr<PointToPointNetDevice> from, Time most) : m_from(from), m_most(most) {}

    // `takes` is the time until the packet's last bit is on the link.
    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> from, Time takes) override {
        if (from == m_from) {
            const double random = m_random->GetValue(0, static_cast<double>(m_most.GetNanoSeconds()));
            m_last = std::max(m_last, Simulator::Now() + takes + NanoSeconds(static_cast<uint64_t>(random)));
            takes = m_last - Simulator::Now();
        }
        return PointToPointChannel::TransmitStart(packet, from, takes);
    }

  private:
    Ptr<PointToPointNetDevice> m_from;
    Time m_most;
    Time m_last{0};
    Ptr<UniformRandomVariable> m_random = CreateObject<UniformRandomVariable>();
};

// One scenario's network: its nodes, and the queue of every device. `full` is the size of a full packet. Packets of
// this size take the same time on a link in ns-3 as in our simulator.
class Network {
  public:
    Network(uint32_t nodes, Routes routes, double full = 1500.0) : m_full(full), m_routes(routes) {
        m_nodes.Create(nodes);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        if (routes == Routes::kNix) {
            stack.SetRoutingHelper(Ipv4NixVectorHelper());
        }
        stack.Install(m_nodes);
        m_addresses.SetBase("10.0.0.0", "255.255.255.252");
    }

    // A link in both directions. Each direction has a drop-tail queue in its device, and no queueing discipline above
    // the device.
    NetDeviceContainer Link(uint32_t a, uint32_t b, double mbit, Time delay, uint32_t packets) {
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(Framed(mbit)));
        helper.SetChannelAttribute("Delay", TimeValue(delay));
        helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
        // With flow control, the address helper would put an FqCoDel above the device's queue.
        helper.DisableFlowControl();
        NetDeviceContainer devices = helper.Install(m_nodes.Get(a), m_nodes.Get(b));
        Ipv4InterfaceContainer interfaces = m_addresses.Assign(devices);
        m_addresses.NewNetwork();
        m_address[a] = interfaces.GetAddress(0);
        m_address[b] = interfaces.GetAddress(1);
        for (uint32_t i = 0; i < devices.GetN(); ++i) {
            m_queues.push_back(DynamicCast<PointToPointNetDevice>(devices.Get(i))->GetQueue());
        }
        return devices;
    }

    // Gives the reverse direction of a link (packets of its second device) its own rate and a random delay.
    void Back(const NetDeviceContainer& link, double mbit, Time delay, Time jitter) const {
        auto back = DynamicCast<PointToPointNetDevice>(link.Get(1));
        back->SetDataRate(Framed(mbit));
        // The helper makes channels of one kind only, so both ends are moved to a channel of another kind.
        Ptr<JitterChannel> channel = CreateObject<JitterChannel>(back, jitter);
        channel->SetAttribute("Delay", TimeValue(delay));
        for (uint32_t i = 0; i < link.GetN(); ++i) {
            DynamicCast<PointToPointNetDevice>(link.Get(i))->Attach(channel);
        }
    }

    // Call this after all links have been created.
    void Route() const {
        if (m_routes == Routes::kGlobal) {
            Ipv4GlobalRoutingHelper::PopulateRoutingTables();
        }
    }

    Ptr<Node> At(uint32_t node) const { return m_nodes.Get(node); }

    // The address of a host (a node with one link).
    Ipv4Address AddressOf(uint32_t host) const { return m_address.at(host); }

    // Number of packets that left a queue onto its link, summed over all links. This number exceeds the number of
    // arrivals by at most the number of packets in flight at the end.
    uint64_t PacketHops() const {
        uint64_t hops = 0;
        for (const auto& q : m_queues) {
            hops += q->GetTotalReceivedPackets() - q->GetNPackets();
        }
        return hops;
    }

    uint64_t Drops() const {
        uint64_t drops = 0;
        for (const auto& q : m_queues) {
            drops += q->GetTotalDroppedPackets();
        }
        return drops;
    }

  private:
    DataRate Framed(double mbit) const {
        return DataRate(static_cast<uint64_t>(mbit * 1e6 * (m_full + kPpp) / m_full));
    }

    double m_full;
    NodeContainer m_nodes;
    Ipv4AddressHelper m_addresses;
    std::map<uint32_t, Ipv4Address> m_address;
    std::vector<Ptr<Queue<Packet>>> m_queues;
    Routes m_routes;
};

// Options of ns-3 have Linux's values: an initial window of 10, an ACK for two segments, SACK, timestamps,
// a timeout of at least 200 ms. `buffer` is the size of a socket's buffer in bytes.
inline void TcpAsLinux(uint32_t mss, uint32_t buffer) {
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

// Sets the time for which an ACK waits for a second segment to Linux's minimum (TCP_DELACK_MIN), as in our receivers.
// The default of ns-3 is 200 ms.
inline void DelayAcksAsLinux() {
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
}

}  // namespace narrows
