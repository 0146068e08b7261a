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
    // Where few calls of the store may wait, one that ends late leaves no place for a moment.
    var refusals = 0
    while credentials.count < count {
      do {
        credentials.append(try await Self.credentials(at: visitor))
      } catch is Unexpected where refusals < 20 {
        refusals += 1
      }
    }
    self.credentials = credentials
  }

  /// Returns the credentials for the second socket of a new device.
  private static func credentials(at visitor: Visitor) async throws -> HeaderFields {
    let device = try await visitor.registeredDevice()
    let first = try await attempt(device.headers(over: visitor.challenge(), count: 1), at: visitor)
    // A gate without a reachable upstream answers 502 after it has admitted the device.
    if let refusal = first.refusal, refusal.status != 502 { throw Unexpected(response: refusal) }
    return try await device.headers(over: visitor.challenge(), count: 2)
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
