import Transport
import TransportEngine

/// Devices that want to be let in at the same moment, each for the second time: the gate knows their keys by then, and
/// needs nothing of the store but the spending.
struct Crowd: Sendable {
  /// One upgrade, and what became of it.
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
      // The gate may have no upstream: it has admitted the device all the same.
      if let refusal = first.refusal, refusal.status != 502 { throw Unexpected(response: refusal) }
      credentials.append(try await device.headers(over: visitor.challenge(), count: 2))
    }
    self.credentials = credentials
  }

  /// All upgrades at once while another process holds the store's lock, in the order of their answers. The lock is
  /// released after the first answer, which can only be a refusal.
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
    } catch ClientFault.refused(let response) {
      return Attempt(credentials: credentials, refusal: response)
    }
  }
}
