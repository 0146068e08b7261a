import ByteCoding
import COpenSSL
import Cryptography
import Foundation
import Locking
import SimulatedDevice
import TestSupport
import Testing
import Transport

@testable import TransportEngine

/// Answers with the subject of the client's certificate.
private struct NameResponder: RequestResponder {
  /// Gets each client certificate.
  var note: @Sendable (PeerCertificate) -> Void = { _ in }

  func respond(to request: Request, from peer: Peer) async -> Disposition {
    peer.verifiedCertificate.map(note)
    return .respond(Response(status: 200, body: Array((peer.verifiedCertificate?.subject ?? "nobody").utf8)))
  }

  func response(to fault: RequestError, of headers: HeaderFields?, id: String, from peer: Peer) -> Response {
    Response(status: 400, closes: true)
  }
}

extension EngineTests {
  /// The validity of a certificate on a connection that stays open after verification.
  @Suite("Client certificates", .timeLimit(.minutes(10)))
  final class ClientCertificateTests {
    private let files: TLSFolder
    private let authority: ClientAuthority
    private let engine: Engine
    private let clients: ClientEngine
    private let failures = AsyncStream.makeStream(of: (reason: String, commonName: String?).self)

    init() throws {
      files = try TLSFolder()
      authority = ClientAuthority(folder: files.folder.path)
      _ = try authority.make(DistinguishedName(.commonName("One")), days: 30, at: .now(), isReplacing: false)
      let server = ServerTLS.CertificateFiles(
        certificateFile: files.folder.serverCertificatePath, keyFile: files.folder.serverKeyPath)
      let tls = try ServerTLS(server, clientAuthorityFile: authority.certificatePath)
      engine = try Engine(
        listeningAt: .ipv4([127, 0, 0, 1], port: 0), loops: 1, tls: tls, responder: NameResponder(),
        report: { [failures] event in
          if case .handshakeFailed(_, let reason, let commonName) = event {
            failures.continuation.yield((reason, commonName))
          }
        })
      clients = try ClientEngine()
    }

    deinit { engine.stop() }

    /// Returns a connection of a client whose certificate was issued at `instant` and is valid for one day.
    private func connect(
      _ name: String = "somebody", file: String = "client", issuedAt instant: Timestamp = .now()
    ) async throws -> ClientConnection {
      let client = try authority.issue(
        file, DistinguishedName(.commonName(name)), days: 1, at: instant, isReplacing: false)
      let tls = try ClientTLS(
        authorityFile: files.folder.tlsAuthorityPath, certificateFile: client[0], keyFile: client[1])
      return try await clients.connect(host: "127.0.0.1", port: engine.address.port, tls: tls)
    }

    @Test("The gate shows its own certificate to an upstream that asks for one", arguments: [true, false])
    func ofTheGate(hasOne: Bool) async throws {
      let paths = try authority.issue(
        "gate", DistinguishedName(.commonName("gate")), days: 1, at: .now(), isReplacing: false)
      let identity = UpstreamTLS.Identity(certificateFile: paths[0], keyFile: paths[1])
      let upstream = Upstream.secureWebSocket(
        host: "127.0.0.1", port: engine.address.port,
        tls: UpstreamTLS(
          caFile: files.folder.tlsAuthorityPath, serverName: "localhost", identity: hasOne ? identity : nil))
      let gate = try TestGate(upstream: upstream)
      let client = try gate.connect()
      try client.send(TestGate.upgrade())
      #expect(String(decoding: try client.readToEnd(), as: UTF8.self).hasSuffix(hasOne ? "CN=gate" : "nobody"))
      try await clients.tryConnecting(to: upstream, within: .seconds(30))
    }

    private func name(on connection: ClientConnection) async throws -> String {
      let response = try await connection.send("GET", "/", headers: TestGate.host, body: [])
      return String(decoding: response.body, as: UTF8.self)
    }

    private func reload(
      clientAuthorityFile: String?, revocationListFile: String? = nil, trustsIntermediates: Bool = false
    ) async throws {
      let server = ServerTLS.CertificateFiles(
        certificateFile: files.folder.serverCertificatePath, keyFile: files.folder.serverKeyPath)
      try await engine.replace(
        responder: NameResponder(),
        tls: try ServerTLS(
          server, clientAuthorityFile: clientAuthorityFile, trustsIntermediates: trustsIntermediates,
          revocationListFile: revocationListFile))
    }

    @Test("A revoked certificate is refused, and ignored on a connection that is open; others are accepted")
    func revoked() async throws {
      let list = try authority.revoke([], at: .now())[0]
      try await reload(clientAuthorityFile: authority.certificatePath, revocationListFile: list)
      let connection = try await connect()
      #expect(try await name(on: connection) == "CN=somebody")
      _ = try authority.revoke(["client"], at: .now())
      // The list was read before.
      #expect(try await name(on: connection) == "CN=somebody")
      try await reload(clientAuthorityFile: authority.certificatePath, revocationListFile: list)
      #expect(try await name(on: connection) == "nobody")
      let revoked = try ClientTLS(
        authorityFile: files.folder.tlsAuthorityPath, certificateFile: authority.certificatePath(of: "client"),
        keyFile: authority.keyPath(of: "client"))
      await #expect(throws: ClientError.self) {
        _ = try await self.name(
          on: self.clients.connect(host: "127.0.0.1", port: self.engine.address.port, tls: revoked))
      }
      var failures = failures.stream.makeAsyncIterator()
      #expect(await failures.next()?.reason.contains("certificate revoked") == true)
      #expect(try await name(on: connect("other", file: "other")) == "CN=other")
    }

    @Test("Without a valid list of its authority, every certificate is refused", arguments: [false, true])
    func withoutList(isExpired: Bool) async throws {
      let past = Timestamp.now().advanced(by: .seconds(-30 * 86400))
      if isExpired {
        _ = try authority.make(DistinguishedName(.commonName("One")), days: 1, at: past, isReplacing: true)
      } else {
        _ = try authority.make(DistinguishedName(.commonName("Two")), days: 30, at: .now(), isReplacing: true)
      }
      // In a file of its own: a new authority replaces the list in its folder.
      let list = files.folder.path + "/old.pem"
      try FileManager.default.copyItem(atPath: authority.revoke([], at: past)[0], toPath: list)
      _ = try authority.make(DistinguishedName(.commonName("One")), days: 30, at: .now(), isReplacing: true)
      try await reload(clientAuthorityFile: authority.certificatePath, revocationListFile: list)
      await #expect(throws: ClientError.self) { _ = try await self.name(on: self.connect()) }
    }

    /// The certificate and the key of the authority of the clients.
    private func own() throws -> (certificate: Certificate, key: ECPrivateKey) {
      let certificate = try Certificate.certificates(
        pem: String(contentsOfFile: authority.certificatePath, encoding: .utf8))
      let key = try ECPrivateKey(pkcs8PEM: String(contentsOfFile: authority.keyPath, encoding: .utf8))
      return (try #require(certificate.first), key)
    }

    /// A list without certificates, in PEM.
    private static func list(_ issuer: Certificate, _ key: ECPrivateKey, isExpired: Bool = false) throws -> String {
      let end = Timestamp.now().advanced(by: .seconds(isExpired ? -86_400 : 86_400))
      return try RevocationListTemplate(
        entries: [], number: 1, thisUpdate: end.advanced(by: .seconds(-2 * 86_400)), nextUpdate: end
      ).signed(by: issuer, key: key)
    }

    private func write(_ texts: String..., to name: String) throws -> String {
      let path = files.folder.path + "/" + name
      try texts.joined().write(toFile: path, atomically: true, encoding: .utf8)
      return path
    }

    /// The expired list in a file with a valid one.
    enum ExpiredList: CaseIterable { case ofAnother, older, olderAtEnd }

    @Test(
      "An expired list of another authority, or an older list of the same one, does not refuse a certificate",
      arguments: ExpiredList.allCases)
    func otherLists(expired: ExpiredList) async throws {
      let (own, key) = try own()
      let otherKey = try ECPrivateKey(.p256)
      let other = try Self.authority("Two", otherKey.spki).selfSigned(with: otherKey)
      let both = try write(own.pem, other.pem, to: "both.pem")
      let valid = try Self.list(own, key)
      let old =
        try expired == .ofAnother
        ? Self.list(other, otherKey, isExpired: true) : Self.list(own, key, isExpired: true)
      let lists = try expired == .olderAtEnd ? write(valid, old, to: "crl.pem") : write(old, valid, to: "crl.pem")
      try await reload(clientAuthorityFile: both, revocationListFile: lists)
      #expect(try await name(on: connect()) == "CN=somebody")
    }

    @Test("A certificate is ignored on a connection that is open after only another authority's list is left")
    func listLeft() async throws {
      let (own, key) = try own()
      let otherKey = try ECPrivateKey(.p256)
      let other = try Self.authority("Two", otherKey.spki).selfSigned(with: otherKey)
      let both = try write(own.pem, other.pem, to: "both.pem")
      let lists = try write(Self.list(own, key), Self.list(other, otherKey), to: "crl.pem")
      try await reload(clientAuthorityFile: both, revocationListFile: lists)
      let connection = try await connect()
      #expect(try await name(on: connection) == "CN=somebody")
      let left = try write(Self.list(other, otherKey), to: "left.pem")
      try await reload(clientAuthorityFile: both, revocationListFile: left)
      #expect(try await name(on: connection) == "nobody")
    }

    @Test(
      "Each issuer of a chain needs a valid list; of a chain that may end below its root, the last one alone",
      arguments: [true, false])
    func chainLists(isPartial: Bool) async throws {
      let (own, key) = try own()
      let rootKey = try ECPrivateKey(.p256)
      let root = try Self.authority("Root", rootKey.spki).selfSigned(with: rootKey)
      let link = try Self.authority("One", own.subjectPublicKeyInfo).signed(by: root, key: rootKey)
      let authorities = try isPartial ? write(link.pem, to: "chain.pem") : write(link.pem, root.pem, to: "chain.pem")
      let all = try write(Self.list(own, key), Self.list(root, rootKey), to: "crl.pem")
      try await reload(clientAuthorityFile: authorities, revocationListFile: all, trustsIntermediates: isPartial)
      let connection = try await connect()
      #expect(try await name(on: connection) == "CN=somebody")
      let last = try write(Self.list(own, key), to: "last.pem")
      try await reload(clientAuthorityFile: authorities, revocationListFile: last, trustsIntermediates: isPartial)
      #expect(try await name(on: connection) == (isPartial ? "CN=somebody" : "nobody"))
      if let another = try? await connect("other", file: "other") {
        #expect((try? await name(on: another)) == (isPartial ? "CN=other" : nil))
      }
    }

    @Test(
      "A certificate is ignored after its authority is replaced or client certificates are turned off",
      arguments: [true, false])
    func replaced(isAsked: Bool) async throws {
      let connection = try await connect()
      #expect(try await name(on: connection) == "CN=somebody")
      _ = try authority.make(DistinguishedName(.commonName("One")), days: 30, at: .now(), isReplacing: true)
      try await reload(clientAuthorityFile: isAsked ? authority.certificatePath : nil)
      #expect(try await name(on: connection) == "nobody")
    }

    @Test("A certificate stays valid after a reload with the same authority")
    func kept() async throws {
      let connection = try await connect()
      try await reload(clientAuthorityFile: authority.certificatePath)
      #expect(try await name(on: connection) == "CN=somebody")
    }

    @Test("A certificate stays valid while the authority of its chain is there, whatever happens to others")
    func others() async throws {
      let own = try String(contentsOfFile: authority.certificatePath, encoding: .utf8)
      let key = try ECPrivateKey(.p256)
      let both = files.folder.path + "/both.pem"
      try (own + Self.authority("Two", key.spki).selfSigned(with: key).pem).write(
        toFile: both, atomically: true, encoding: .utf8)
      try await reload(clientAuthorityFile: both)
      let connection = try await connect()
      #expect(try await name(on: connection) == "CN=somebody")
      try await reload(clientAuthorityFile: authority.certificatePath)
      #expect(try await name(on: connection) == "CN=somebody")
    }

    @Test("A certificate ends with the first of its chain that expires", arguments: [(30, 1), (1, 30)])
    func end(authorityDays: Int64, ownDays: Int64) async throws {
      let start = Timestamp.now().wholeSecond
      _ = try authority.make(
        DistinguishedName(.commonName("One")), days: authorityDays, at: start, isReplacing: true)
      let certificates = LockedValue<[PeerCertificate]>([])
      let server = ServerTLS.CertificateFiles(
        certificateFile: files.folder.serverCertificatePath, keyFile: files.folder.serverKeyPath)
      try await engine.replace(
        responder: NameResponder { certificate in certificates.withLock { $0.append(certificate) } },
        tls: try ServerTLS(server, clientAuthorityFile: authority.certificatePath))
      let client = try authority.issue(
        "client", DistinguishedName(.commonName("somebody")), days: ownDays, at: start, isReplacing: false)
      let tls = try ClientTLS(
        authorityFile: files.folder.tlsAuthorityPath, certificateFile: client[0], keyFile: client[1])
      let connection = try await clients.connect(host: "127.0.0.1", port: engine.address.port, tls: tls)
      #expect(try await name(on: connection) == "CN=somebody")
      let ends = try [authority.certificatePath, client[0]].map { path in
        try #require(Certificate.certificates(pem: String(contentsOfFile: path, encoding: .utf8)).first).notAfter
      }
      let certificate = try #require(certificates.withLock { $0.first })
      #expect(certificate.expiresAt == ends.min()?.advanced(by: Duration.seconds(1)))
      #expect(certificate.authorities.count == 1)
    }

    @Test(
      "A refused certificate is reported with the reason and its escaped and bounded common name",
      arguments: [
        ("somebody", "somebody"), ("a\"b\u{202E}c", #"a\"b\u{202E}c"#),
        (String(repeating: "x", count: 64), String(repeating: "x", count: 64)),
      ])
    func refused(name: String, reported: String) async throws {
      let connection = try? await connect(name, issuedAt: Timestamp.now().advanced(by: .seconds(-2 * 86400)))
      // In TLS 1.3 the client completes its handshake before the server verifies the certificate.
      if let connection { _ = try? await self.name(on: connection) }
      var failures = failures.stream.makeAsyncIterator()
      let failure = try #require(await failures.next())
      #expect(failure.reason.hasSuffix("certificate verify failed: certificate has expired"))
      #expect(failure.commonName == reported)
    }

    @Test("A certificate of another authority is reported, and a handshake without a certificate has no name")
    func foreign() async throws {
      _ = try authority.make(DistinguishedName(.commonName("One")), days: 30, at: .now(), isReplacing: true)
      let connection = try? await connect()
      if let connection { _ = try? await name(on: connection) }
      var failures = failures.stream.makeAsyncIterator()
      let failure = try #require(await failures.next())
      #expect(failure.reason.contains("certificate verify failed: ") && failure.commonName == "somebody")
      let otherClient = try ScriptedSocket(connectingTo: engine.address.port)
      try otherClient.send("no TLS\r\n\r\n")
      let other = try #require(await failures.next())
      #expect(other.commonName == nil)
    }

    @Test(
      "An intermediate CA alone verifies certificates if it is trusted without its issuer, otherwise none",
      arguments: [true, false])
    func intermediate(isTrusted: Bool) async throws {
      let rootKey = try ECPrivateKey(.p256)
      let root = try Self.authority("Root", rootKey.spki).selfSigned(with: rootKey)
      let own = try #require(
        Certificate.certificates(pem: String(contentsOfFile: authority.certificatePath, encoding: .utf8)).first)
      let file = files.folder.path + "/intermediate.pem"
      try Self.authority("One", own.subjectPublicKeyInfo).signed(by: root, key: rootKey).pem.write(
        toFile: file, atomically: true, encoding: .utf8)
      let server = ServerTLS.CertificateFiles(
        certificateFile: files.folder.serverCertificatePath, keyFile: files.folder.serverKeyPath)
      try await engine.replace(
        responder: NameResponder(),
        tls: try ServerTLS(server, clientAuthorityFile: file, trustsIntermediates: isTrusted))
      let connection = try? await connect()
      guard !isTrusted else {
        #expect(try await name(on: try #require(connection)) == "CN=somebody")
        // A certificate of another authority of the same name stays refused.
        _ = try authority.make(DistinguishedName(.commonName("One")), days: 30, at: .now(), isReplacing: true)
        if let foreign = try? await connect() { #expect((try? await name(on: foreign)) == nil) }
        return
      }
      if let connection { #expect((try? await name(on: connection)) == nil) }
      var failures = failures.stream.makeAsyncIterator()
      let failure = try #require(await failures.next())
      #expect(failure.reason.contains("unable to get issuer certificate"), "\(failure.reason)")
    }

    private static func authority(_ name: String, _ key: [UInt8]) -> CertificateTemplate {
      var template = CertificateTemplate(
        subject: DistinguishedName(.commonName(name)), subjectPublicKeyInfo: key,
        notBefore: Timestamp.now().advanced(by: .seconds(-86_400)),
        notAfter: Timestamp.now().advanced(by: .seconds(86_400)))
      template.extensions = [
        .basicConstraints(isAuthority: true), .keyUsage([.keyCertSign, .crlSign]),
        .subjectKeyIdentifier(CertificateTemplate.keyIdentifier(of: key)),
      ]
      return template
    }

    @Test(
      "A chain of ordinary length is accepted; 16 KiB of certificates fail the handshake", arguments: [12, 60])
    func chain(length: Int) async throws {
      let client = try authority.issue(
        "client", DistinguishedName(.commonName("somebody")), days: 1, at: .now(), isReplacing: false)
      let certificate = try String(contentsOfFile: client[0], encoding: .utf8)
      try (0..<length).map { _ in certificate }.joined().write(toFile: client[0], atomically: true, encoding: .utf8)
      let tls = try ClientTLS(
        authorityFile: files.folder.tlsAuthorityPath, certificateFile: client[0], keyFile: client[1])
      let connection = try? await clients.connect(host: "127.0.0.1", port: engine.address.port, tls: tls)
      guard length > 12 else {
        #expect(try await name(on: try #require(connection)) == "CN=somebody")
        return
      }
      if let connection { _ = try? await name(on: connection) }
      var failures = failures.stream.makeAsyncIterator()
      let failure = try #require(await failures.next())
      #expect(failure.reason.contains("excessive message size"))
    }

    /// Makes a key on `curve` and a certificate of it, which the authority signs if `isIssued`, and otherwise the key.
    private func certificate(
      on curve: String, named name: String, isIssued: Bool
    ) async throws -> (certificate: String, key: String) {
      let path = files.folder.path + "/" + name
      let issuer = isIssued ? ["-CA", authority.certificatePath, "-CAkey", authority.keyPath] : []
      let run = try await ChildProcess.run(
        Places.tool("openssl"),
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:\(curve)", "-nodes", "-days", "2", "-subj",
          "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path + ".key", "-out", path + ".pem",
        ] + issuer, in: files.folder.path)
      try #require(run.exit == .code(0), "\(run.errors)")
      return (path + ".pem", path + ".key")
    }

    /// The versions of TLS of a client, one at a time.
    enum Version: Int, CaseIterable {
      case tls12 = 0x0303
      case tls13 = 0x0304

      func limit(_ tls: ClientTLS) {
        for limit in [SSL_CTRL_SET_MIN_PROTO_VERSION, SSL_CTRL_SET_MAX_PROTO_VERSION] {
          #expect(tls.withContext { SSL_CTX_ctrl($0, limit, rawValue, nil) } == 1)
        }
      }
    }

    @Test(
      "W19 a client certificate on each curve is accepted in both versions of TLS, and a foreign one in neither",
      arguments: ["P-256", "P-384", "P-521"], Version.allCases)
    func curves(curve: String, version: Version) async throws {
      for isIssued in [true, false] {
        let client = try await certificate(on: curve, named: "somebody", isIssued: isIssued)
        let tls = try ClientTLS(
          authorityFile: files.folder.tlsAuthorityPath, certificateFile: client.certificate, keyFile: client.key)
        version.limit(tls)
        let connection = try? await clients.connect(host: "127.0.0.1", port: engine.address.port, tls: tls)
        guard !isIssued else {
          #expect(try await name(on: try #require(connection)) == "CN=somebody")
          continue
        }
        if let connection { _ = try? await name(on: connection) }
        var failures = failures.stream.makeAsyncIterator()
        let failure = try #require(await failures.next())
        #expect(failure.reason.contains("certificate verify failed: "), "\(failure)")
        #expect(failure.commonName == "somebody")
      }
    }

    @Test(
      "W19 a server's certificate on each curve is accepted in both versions of TLS, and an unknown one in neither",
      arguments: ["P-256", "P-384", "P-521"], Version.allCases)
    func serverCurves(curve: String, version: Version) async throws {
      let server = try await certificate(on: curve, named: "server", isIssued: false)
      try await engine.replace(
        responder: NameResponder(),
        tls: try ServerTLS(.init(certificateFile: server.certificate, keyFile: server.key)))
      let tls = try ClientTLS(authorityFile: server.certificate)
      version.limit(tls)
      let connection = try await clients.connect(host: "127.0.0.1", port: engine.address.port, tls: tls)
      #expect(try await name(on: connection) == "nobody")
      let other = try ClientTLS(authorityFile: files.folder.tlsAuthorityPath)
      version.limit(other)
      await #expect(throws: (any Error).self) {
        try await clients.connect(host: "127.0.0.1", port: engine.address.port, tls: other)
      }
    }

    @Test("A certificate is ignored after it expires")
    func expired() async throws {
      // Valid for four more seconds.
      let connection = try await connect(issuedAt: Timestamp.now().advanced(by: .seconds(4 - 86400)))
      #expect(try await name(on: connection) == "CN=somebody")
      while try await name(on: connection) != "nobody" { try await Task.sleep(for: .milliseconds(100)) }
    }
  }
}
