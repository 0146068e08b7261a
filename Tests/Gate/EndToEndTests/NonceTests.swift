import Foundation
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("Nonces", .serialized, .timeLimit(.minutes(10)))
struct NonceTests {
  @Test("E-003 A nonce that fifty connections send at the same time opens one socket, in each of twenty rounds")
  func raced() async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream)) { gate in
      let visitor = try Visitor(gate)
      let device = try await visitor.registeredDevice()
      for round in 1...20 {
        let credentials = try device.headers(over: await visitor.challenge(), count: UInt32(round))
        let answers = try await Self.answers(of: visitor, to: credentials, count: 50)
        #expect(answers.filter { $0 == "101" }.count == 1, "round \(round): \(answers)")
        #expect(answers.filter { $0 == "nonce_used" }.count == 49, "round \(round): \(answers)")
      }
    }
  }

  /// Returns the answers to `count` upgrades on connections that are all open before the first upgrade is sent.
  private static func answers(
    of visitor: Visitor, to credentials: HeaderFields, count: Int
  ) async throws -> [String] {
    let connections = try await withThrowingTaskGroup(
      of: ClientConnection.self, returning: [ClientConnection].self
    ) { group in
      for _ in 0..<count { group.addTask { try await visitor.connection() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    return try await withThrowingTaskGroup(of: String.self) { group in
      for connection in connections {
        group.addTask {
          do throws(ClientError) {
            let socket = try await connection.upgrade("/", host: "localhost", headers: credentials)
            return String(socket.response.status)
          } catch .refused(let response) {
            return response.headers.first("X-Attest-Error") ?? "\(response.status)"
          } catch {
            return error.description
          }
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test("A nonce is not spent if other clients send it with wrong credentials")
  func unburnt() async throws {
    let backend = try await EchoBackend()
    try await RunningGate.serving(GateConfiguration(upstream: backend.upstream)) { gate in
      let visitor = try Visitor(gate)
      let owner = try await visitor.registeredDevice()
      let nonce = try await visitor.challenge()
      let otherDevice = try TestDevice()
      let (right, wrong) = (try owner.headers(over: nonce), try otherDevice.headers(over: nonce))
      let forged = right.without(HeaderFields.dataName)
        .with(HeaderFields.dataName, wrong.first(named: HeaderFields.dataName) ?? "")
      for bad in [wrong, forged, right.without(HeaderFields.keyIDName)] {
        let refused = try await visitor.refusal(of: bad)
        #expect([400, 401].contains(refused.status))
      }
      let socket = try await visitor.open(right)
      #expect(socket.response.status == 101)
    }
  }

  @Test("After a kill of the gate directly after the 101, the nonce and the counter are not valid again")
  func killed() async throws {
    let backend = try await EchoBackend()
    let configuration = GateConfiguration(upstream: backend.upstream)
    try await Places.withTemporaryFolder { folder in
      let first = try await RunningGate(configuration, in: folder)
      let visitor = try Visitor(first)
      let device = try await visitor.registeredDevice()
      let credentials = try device.headers(over: await visitor.challenge(), count: 41)
      let socket = try await visitor.open(credentials)
      first.process.send(SIGKILL)
      #expect(try await first.process.exit(within: .seconds(10)) == .signal(SIGKILL))
      #expect(socket.response.status == 101)

      let second = try await RunningGate(configuration, in: folder)
      defer { second.process.kill() }
      let again = try Visitor(second)
      let replay = try await again.refusal(of: credentials)
      #expect(replay.headers.first("X-Attest-Error") == "nonce_used")
      let old = try await again.refusal(of: device.headers(over: await again.challenge(), count: 41))
      #expect(old.headers.first("X-Attest-Error") == "counter_replayed")
      #expect(try StateFile(of: second).counter() == 41)
      let next = try await again.open(device.headers(over: await again.challenge(), count: 42))
      #expect(next.response.status == 101)
    }
  }
}
