internal import Transport

/// The traffic of an engine so far.
public struct EngineTraffic: Sendable, Hashable {
  /// Client connections that are open now, in any phase.
  public var connections = 0
  /// Sessions that are open now.
  public var sessions = 0
  /// WebSocket bytes of all sessions, open and closed, frame headers included.
  public var bytesFromClients: UInt64 = 0
  /// The same in the other direction.
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
  /// Returns the sum over all loops. Each loop is counted at a slightly different moment. All
  /// values are 0 after `stop`.
  ///
  /// Each loop iterates over its sessions, which takes microseconds for a thousand: meant for
  /// one call every few seconds.
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
