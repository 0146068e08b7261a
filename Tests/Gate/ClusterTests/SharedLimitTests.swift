import GateProcesses
import Glibc
import PostgresServers
import SimulatedDevice
import TestSupport
import Testing
import Transport
import TransportEngine

@Suite("A limit shared by all gates", .serialized, .timeLimit(.minutes(5)))
struct SharedLimitTests {
  /// Opens sockets at gate `number` until it refuses one.
  private func fill(_ gates: TwoGates, _ number: Int, as phone: Phone, from counter: UInt32) async throws
    -> [ClientWebSocket]
  {
    var sockets: [ClientWebSocket] = []
    while sockets.count < 10 {
      let visitor = gates.visitors[number]
      let credentials = try phone.credentials(
        over: await visitor.challenge(), counter: counter + UInt32(sockets.count))
      do throws(ClientError) {
        sockets.append(try await visitor.open("/", credentials))
      } catch {
        guard case .refused(let answer) = error else { throw error }
        #expect(answer.status == 503 && answer.headers.first("X-Attest-Error") == "overloaded")
        break
      }
    }
    return sockets
  }

  private func count(_ gates: Int, at gate: GateProcess) async throws {
    _ = try await gate.process.errors.first("\(gates) gates to be counted", within: .seconds(90)) {
      $0.contains("cluster membership changed") && $0.contains(#""gates":\#(gates)"#)
    }
  }

  @Test("Gates divide a limit; a remaining gate gets the whole limit half a minute after the other has left")
  func divided() async throws {
    var plan = GatePlan()
    plan.further = "limits: { global_sessions: 4 }"
    try await TwoGates.serving(on: .shared(), plan) { gates in
      for gate in gates.gates { try await count(2, at: gate) }
      let phones = [try await gates.registeredPhone(), try await gates.registeredPhone()]
      let first = try await fill(gates, 0, as: phones[0], from: 1)
      let second = try await fill(gates, 1, as: phones[1], from: 1)
      #expect(first.count == 2 && second.count == 2)

      gates.gates[1].process.send(SIGTERM)
      #expect(try await gates.gates[1].process.exit() == .code(0))
      // The limit does not grow immediately, because the gate may only be restarting.
      #expect(try await fill(gates, 0, as: phones[0], from: 100).count == 0)
      try await count(1, at: gates.gates[0])
      let more = try await fill(gates, 0, as: phones[0], from: 200)
      #expect(more.count == 2)
      for socket in first + more { #expect(try await socket.exchange(.text("x")) == .text("x")) }
    }
  }
}
