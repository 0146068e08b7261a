internal import Transport

/// What an engine has carried so far.
public struct EngineTraffic: Sendable, Hashable {
  /// Connections of clients that are open now, in whatever phase.
  public var connections = 0
  /// Sessions that are open now.
  public var sessions = 0
  /// WebSocket bytes of all sessions, open ones and those that are over, frame headers included.
  public var bytesFromClients: UInt64 = 0
  public var bytesFromUpstreams: UInt64 = 0

  public init() {}

  mutating func add(_ summary: SessionSummary) {
    bytesFromClients &+= summary.bytesFromClient
    bytesFromUpstreams &+= summary.bytesFromUpstream
  }

  mutating func add(_ other: EngineTraffic) {
    connections += other.connections
    sessions += other.sessions
    bytesFromClients &+= other.bytesFromClients
    bytesFromUpstreams &+= other.bytesFromUpstreams
  }
}

extension Engine {
  /// The sum over all loops, each of which counts its own for a moment; zero after `stop`.
  ///
  /// Each loop goes through its sessions, some microseconds for a thousand: meant for a question every few seconds.
  public func traffic() async -> EngineTraffic {
    var sum = EngineTraffic()
    for loop in loops {
      let traffic = await withCheckedContinuation { continuation in
        let isAccepted = loop.execute { continuation.resume(returning: $0.traffic) }
        if !isAccepted { continuation.resume(returning: EngineTraffic()) }
      }
      sum.add(traffic)
    }
    return sum
  }
}

extension EventLoop {
  fileprivate var traffic: EngineTraffic {
    var traffic = ended
    traffic.connections = sessionCount
    for slot in 0..<slots.end {
      guard let token = slots.token(in: slot), let session = slots.session(token), session.pointee.openedAt != nil
      else { continue }
      traffic.sessions += 1
      traffic.bytesFromClients &+= session.pointee.ends[0].bytes
      traffic.bytesFromUpstreams &+= session.pointee.ends[1].bytes
    }
    return traffic
  }
}
