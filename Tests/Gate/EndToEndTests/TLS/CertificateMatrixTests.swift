import Foundation
import TestSupport
import Testing

/// The client's certificate, or none, by the name of its file.
enum ShownCertificate: String, Sendable, CaseIterable, CustomTestStringConvertible {
  case none
  case good
  case clientOnly = "client-only"
  case throughIntermediate = "intermediate"
  case intermediateMissing = "intermediate-missing"
  case expiredIntermediate = "expired-intermediate"
  case version1 = "version-1"
  case expired
  case notYetValid = "not-yet-valid"
  case otherAuthority = "other-authority"
  case sameNameAuthority = "same-name-authority"
  case selfSigned = "self-signed"
  case selfSignedInTheName = "self-signed-in-the-name"
  case leafAsIssuer = "leaf-as-issuer"
  case serverOnly = "server-only"
  case unknownCritical = "unknown-critical"
  case unknownUncritical = "unknown-uncritical"
  case badSignature = "bad-signature"

  var testDescription: String { rawValue }

  /// The status of the answer to an upgrade with this certificate; `nil` if the TLS handshake fails.
  var status: Int? {
    switch self {
    case .none: 401
    case .good, .clientOnly, .throughIntermediate, .version1, .unknownUncritical: 101
    default: nil
    }
  }

  /// The logged reason of a failed handshake.
  var reason: String {
    switch self {
    case .none, .good, .clientOnly, .throughIntermediate, .version1, .unknownUncritical: ""
    case .badSignature: "bad signature"
    default: "certificate verify failed"
    }
  }

  func arguments(in folder: String) -> [String] {
    guard self != .none else { return [] }
    let file = "\(folder)/\(rawValue)"
    let chain = file + ".chain.pem"
    let further = FileManager.default.fileExists(atPath: chain) ? ["-cert_chain", chain] : []
    return ["-cert", file + ".pem", "-key", file + ".key"] + further
  }
}

@Suite("Client certificates over TLS", .serialized, .timeLimit(.minutes(5)))
struct CertificateMatrixTests {
  @Test(
    "For every kind, a valid certificate opens a socket, and an invalid one fails the handshake",
    arguments: ["-tls1_2", "-tls1_3"])
  func matrix(version: String) async throws {
    let witness = try await Witness()
    defer { witness.process.kill() }
    try await Places.withTemporaryFolder { folder in
      let (exit, _, errors) = try await PythonProgram.certificates.finish([folder])
      #expect(exit == .code(0), "\(errors)")
      let gate = try await RunningGate(
        GateConfiguration(upstream: witness.url, clientAuthority: folder + "/authority.pem"), in: folder)
      defer { gate.process.kill() }
      var admitted = 0
      for shown in ShownCertificate.allCases {
        let status = try await Self.status(of: RawClient(gate, [version] + shown.arguments(in: folder)))
        #expect(status == shown.status, "\(shown)")
        if status == 101 {
          admitted += 1
          // The backend may record the head a moment later.
          _ = try await witness.head(admitted)
        }
        #expect(try witness.connectionCount == admitted, "\(shown)")
      }
      #expect(admitted == 5)
      gate.process.send(SIGTERM)
      let entries = try await gate.process.errors.all().compactMap { LogEntry(line: $0) }
      let failures = entries.filter { $0.message == "TLS handshake failed" }.map { $0.reason ?? "" }
      let refused = ShownCertificate.allCases.filter { $0.status == nil }
      #expect(failures.count == refused.count)
      for (failure, shown) in zip(failures, refused) { #expect(failure.contains(shown.reason), "\(shown)") }
    }
  }

  /// Returns the status of the answer to an upgrade; `nil` if there is none.
  private static func status(of client: RawClient) async throws -> Int? {
    let process = try client.connect()
    defer { process.kill() }
    process.write(HeadCase.head(["GET / HTTP/1.1"] + HeadCase.handshake))
    let line = try? await process.output.first("an answer") { $0.hasPrefix("HTTP/1.1 ") }
    return line.flatMap { Int($0.dropFirst(9).prefix(3)) }
  }
}
