import ACME
import ByteCoding
import Cryptography
import Foundation
import TestSupport
import Testing
import Transport
import TransportEngine

/// What handshakes get from a listener that answers challenges. `openssl s_client` asks.
@Suite("Challenges in the handshakes of a listener", .timeLimit(.minutes(2)))
struct ChallengeTests {
  private struct Seen {
    let output: String
    var isChallenge: Bool { output.contains("ALPN protocol: acme-tls/1") && output.contains("ACME challenge") }
    var isListener: Bool { output.contains("ALPN protocol: http/1.1") && output.contains("localhost") }
    var isRefused: Bool { output.contains("alert") && !output.contains("BEGIN CERTIFICATE") }
  }

  /// What `openssl s_client` sees at a listener with a challenge for `name`.
  private func seen(
    _ arguments: [String], withCertificate: Bool = true, name: String = "gate.example"
  ) async throws -> Seen {
    let responder = ChallengeResponder()
    let challenge = try ChallengeCertificate.make(for: name, digest: SHA256.hash([1]), at: .now())
    try responder.answer([name: .init(chainPEM: challenge.certificatePEM, keyPEM: challenge.keyPEM)])
    #expect(responder.names == [name.lowercased()])
    let key = try ECPrivateKey(.p256)
    let own = CertificateTemplate(
      subject: DistinguishedName(.commonName("localhost")), subjectPublicKeyInfo: key.spki,
      notBefore: .now().advanced(by: .seconds(-60)), notAfter: .now().advanced(by: .seconds(3600)))
    let material = CertificateMaterial(chainPEM: try own.selfSigned(with: key).pem, keyPEM: try key.pkcs8PEM)
    let engine = try Engine(
      listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1,
      tls: ServerTLS(withCertificate ? [material] : [], challenges: responder), responder: Refuser())
    defer { engine.stop() }
    let client = try await ChildProcess.run(
      Places.tool("openssl"), ["s_client", "-connect", "127.0.0.1:\(engine.address.port)"] + arguments,
      input: Array("GET / HTTP/1.1\r\nHost: gate.example\r\n\r\n".utf8))
    return Seen(output: (client.output + client.errors).joined(separator: "\n"))
  }

  @Test(
    "A handshake for acme-tls/1 alone and a name with a challenge gets its certificate",
    arguments: [
      ["-tls1_2"], ["-tls1_3"], ["-tls1_3", "-groups", "X448:P-256"], ["-servername", "GATE.example"],
    ])
  func answered(further: [String]) async throws {
    #expect(try await seen(["-alpn", "acme-tls/1", "-servername", "gate.example"] + further).isChallenge)
    #expect(
      try await seen(["-alpn", "acme-tls/1", "-servername", "gate.example"] + further, withCertificate: false)
        .isChallenge)
  }

  @Test("Nothing can be asked after a challenge: the connection is closed")
  func closed() async throws {
    let seen = try await seen(["-alpn", "acme-tls/1", "-servername", "gate.example"])
    #expect(seen.isChallenge && !seen.output.contains("HTTP/1.1"))
  }

  @Test(
    "acme-tls/1 for another name, without a name or among other protocols is no challenge",
    arguments: [
      ["-alpn", "acme-tls/1", "-servername", "other.example"], ["-alpn", "acme-tls/1", "-noservername"],
      ["-alpn", "acme-tls/1,h2", "-servername", "gate.example"], ["-alpn", "h2", "-servername", "gate.example"],
    ])
  func refused(arguments: [String]) async throws {
    #expect(try await seen(arguments).isRefused)
  }

  @Test("The name is compared as bytes, with regard to no case but that of ASCII")
  func bytes() async throws {
    func servesChallenge(_ asked: String) async throws -> Bool {
      try await seen(["-alpn", "acme-tls/1", "-servername", asked], name: "Kit.example").isChallenge
    }
    #expect(try await servesChallenge("kIT.example"))
    // The Kelvin sign, which is K by canonical equivalence.
    #expect(try await !servesChallenge("\u{212A}it.example"))
  }

  @Test(
    "http/1.1 gets the listener's own certificate, with a challenge for the name or without",
    arguments: [
      ["-alpn", "http/1.1", "-servername", "gate.example"], ["-alpn", "http/1.1", "-servername", "localhost"],
      ["-alpn", "acme-tls/1,http/1.1", "-servername", "gate.example"],
    ])
  func ordinary(arguments: [String]) async throws {
    #expect(try await seen(arguments).isListener)
    #expect(try await seen(arguments, withCertificate: false).isRefused)
  }
}

private struct Refuser: RequestResponder {
  func respond(to request: Request, from peer: Peer) async -> Disposition { .respond(Response(status: 404)) }
  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, closes: true)
  }
}
