import ACME
import TestSupport
import Testing
import Transport

@Suite("A server of ACME or of a status list that drips", .timeLimit(.minutes(1)))
struct DrippingAnswerTests {
  @Test("The time for an exchange bounds the handshake, too: a record of TLS that drips ends at the deadline")
  func handshake() async throws {
    // The header of a handshake record of 16,000 bytes.
    let server = try DrippingServer(opening: [0x16, 0x03, 0x03, 0x3E, 0x80])
    defer { server.stop() }
    let transport = try EngineTransport(authorityFile: nil, patience: .milliseconds(300))
    let url = "https://127.0.0.1:\(server.port)/directory"
    for _ in 1...2 {
      let error = await #expect(throws: ACMEError.self) {
        _ = try await transport.send("GET", url, headers: HeaderFields(), body: [])
      }
      guard case .unreachable(_, let reason) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason == "timed out")
    }
  }
}
