import AppAttest
import AttestGate
import ByteCoding
import Databases
import GateProcesses
import PostgresServers
import PostgresStore
import TestSupport
import Transport
import TransportEngine

/// Two gate processes on one PostgreSQL database, with an echo server as their upstream.
struct TwoGates: Sendable {
  let gates: [GateProcess]
  let visitors: [Visitor]
  /// The store that the gates share, opened as an operator's command opens it.
  let store: PostgresStore

  static func serving<R>(
    on server: PostgresServer, _ plan: GatePlan = GatePlan(), _ body: (TwoGates) async throws -> R
  ) async throws -> R {
    try await serving(at: server.newURL(), plan, body)
  }

  static func serving<R>(
    at url: String, _ plan: GatePlan = GatePlan(), _ body: (TwoGates) async throws -> R
  ) async throws -> R {
    try await EchoProcess.serving { upstream in
      try await Places.withTemporaryFolder { path in
        var plan = plan
        plan.routes = [("/", upstream)]
        plan.storeURL = url
        // One folder, so that both gates use the same authority.
        let first = try await GateProcess(plan, in: path + "/gate")
        defer { first.process.kill() }
        let second = try await GateProcess(plan, in: path + "/gate")
        defer { second.process.kill() }
        let store = PostgresStore(try ConnectionParameters(url: url))
        let result = try await body(
          TwoGates(gates: [first, second], visitors: [Visitor(to: first), Visitor(to: second)], store: store))
        await store.close()
        return result
      }
    }
  }

  /// Returns a phone whose key is registered at the first gate.
  func registeredPhone() async throws -> Phone {
    let phone = try Phone(of: gates[0].authority)
    try await visitors[0].register(phone)
    return phone
  }
}

extension Phone {
  /// The id of the phone's key in the registry.
  var registeredID: KeyID {
    get throws {
      guard let keyID = KeyID(base64: keyID) else { throw Unexpected("a key id of another size") }
      return keyID
    }
  }
}

/// Returns the close code of a socket and the time from `start` to its end.
func ending(
  of socket: ClientWebSocket, since start: ContinuousClock.Instant
) async throws -> (code: UInt16?, after: Duration) {
  while true {
    if case .ended(let ending) = try await socket.receive() { return (ending.code, .now - start) }
  }
}
