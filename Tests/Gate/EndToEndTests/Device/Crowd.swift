import Transport
import TransportEngine

/// Devices that request an upgrade at the same moment, each for the second time. The gate has their keys cached and
/// uses the store only to spend nonces.
struct Crowd: Sendable {
  /// One upgrade and its outcome.
  struct Attempt: Sendable {
    let credentials: HeaderFields
    var socket: ClientWebSocket?
    var refusal: Response?
  }

  private let visitor: Visitor
  private let credentials: [HeaderFields]

  init(of count: Int, at visitor: Visitor) async throws {
    self.visitor = visitor
    var credentials: [HeaderFields] = []
    for _ in 0..<count {
      let device = try await visitor.registeredDevice()
      let first = try await Self.attempt(device.headers(over: visitor.challenge(), count: 1), at: visitor)
      // A gate without a reachable upstream answers 502 after it has admitted the device.
      if let refusal = first.refusal, refusal.status != 502 { throw Unexpected(response: refusal) }
      credentials.append(try await device.headers(over: visitor.challenge(), count: 2))
    }
    self.credentials = credentials
  }

  /// Sends all upgrades at the same time while another process locks the store, and returns them in the order of their
  /// answers. The lock is released after the first answer, which can only be a refusal.
  func upgradeWhileLocked() async throws -> [Attempt] {
    let state = try StateFile(of: visitor.gate)
    try state.lock()
    return try await withThrowingTaskGroup(of: Attempt.self) { group in
      for credentials in credentials {
        group.addTask { [visitor] in try await Self.attempt(credentials, at: visitor) }
      }
      var attempts: [Attempt] = []
      for try await attempt in group {
        attempts.append(attempt)
        if attempts.count == 1 { try state.unlock() }
      }
      return attempts
    }
  }

  private static func attempt(_ credentials: HeaderFields, at visitor: Visitor) async throws -> Attempt {
    do {
      return Attempt(credentials: credentials, socket: try await visitor.open(credentials))
    } catch ClientError.refused(let response) {
      return Attempt(credentials: credentials, refusal: response)
    }
  }
}
