import Foundation
import MFAFixtures
import TestSupport
import Testing

@Suite("Commands whose peers drip", .timeLimit(.minutes(3)))
struct DrippingPeerTests {
  @Test("status and drain end at their one deadline, at a socket whose answer begins and never ends")
  func adminClient() async throws {
    try await BackendInstallation.make { place in
      for opening in [nil, Array("HTTP/1.1 200 OK\r\nX-Slow: ".utf8)] {
        try? FileManager.default.removeItem(atPath: place.socket)
        let server = try DrippingServer(opening: opening, socket: place.socket)
        defer { server.stop() }
        async let status = place.operate("status")
        async let drain = place.operate("drain")
        for run in try await [status, drain] {
          #expect(run.exit == .code(69) && run.output == [], "\(run)")
          #expect(run.errors.first?.hasSuffix("no complete answer within 10 s") == true, "\(run)")
          #expect(run.errors.last == "hint: see the backend's log for what it waits for", "\(run)")
        }
        // The head and the whole body are one exchange: neither was asked for twice.
        #expect(server.connections == 2)
      }
    }
  }

  @Test("check ends, with a line for each peer that drips: the gate's keys, the provider, the mail server, the socket")
  func check() async throws {
    try await BackendInstallation.make { place in
      let (web, mail) = (try DrippingServer(), try DrippingServer(opening: Array("220-mail".utf8)))
      let socket = try DrippingServer(socket: place.socket)
      defer { for server in [web, mail, socket] { server.stop() } }
      try place.configure(
        """
        email: { smtp: "127.0.0.1:\(mail.port)", from: a@example.com }
        oidc: { issuer: "\(web.base)", audience: app }
        """, jwks: web.base + "/jwks.json")
      let run = try await place.operate("check")
      #expect(run.exit == .code(1), "\(run)")
      for key in ["gate.jwks", "oidc.issuer", "email.smtp", "admin.listen"] {
        #expect(run.errors.contains { $0.hasPrefix("error: ") && $0.contains(" \(key): ") }, "\(key): \(run)")
      }
      #expect(Set(web.paths) == ["/jwks.json", "/.well-known/openid-configuration"])
      #expect(socket.paths == ["/v1/status"] && mail.connections == 1)
    }
  }
}
