import ByteCoding
import ConfigurationEngine
import Cryptography
import Foundation
import GateRuntime
import SimulatedDevice
import Testing

@Suite("The files of a configuration", .timeLimit(.minutes(2)))
struct FileTests {
  private static let unreachable = "failed: routes[0].upstream: ws://127.0.0.1:1 cannot be reached: "

  /// Returns the failures and warnings except that of the upstream, at which no process listens.
  private func findings(
    _ bench: Bench, _ extra: String = "", at instant: Timestamp = Bench.now
  ) async throws -> [String] {
    let settings = try bench.settings(extra + "\nroutes: [{ upstream: 'ws://127.0.0.1:1' }]")
    return try await bench.findings(settings, at: instant).filter { !$0.hasPrefix(Self.unreachable) }
  }

  @Test("A valid certificate and its key are reported with the end of validity")
  func sound() async throws {
    try await Bench.with { bench in
      #expect(try await findings(bench) == [])
      let results = try await bench.results(try bench.settings())
      let end = try Bench.authority.get().server.certificate.notAfter
      #expect(
        results.filter { $0.key.hasPrefix("tls.") }.map(bench.line) == [
          "passed: tls.key_file: matches the certificate (mode 0600)",
          "passed: tls.cert_file: O=Sallyport development,CN=localhost, valid until \(end)",
        ])
    }
  }

  @Test("Tokens and client attestations are reported with how long a revoked key keeps its last one")
  func tokens() async throws {
    try await Bench.with { bench in
      func reported(_ tokens: String) async throws -> [String] {
        let app = "{ team_id: AAABBBCCC1, bundle_id: com.example.app }"
        let settings = try bench.settings("app_attest: { apps: [\(app)] }\ntokens: { \(tokens) }")
        return try await bench.results(settings).map(bench.line).filter { $0.hasPrefix("passed: tokens") }
      }
      let ending = "so long a revoked key keeps its last one"
      let token = "passed: tokens: tokens for ledger, valid for 300 s: \(ending)"
      let attestation = "passed: tokens.clients: attestations for the client wallet, valid for 3600 s: \(ending)"
      let clients = "clients: [{ client_id: wallet }]"
      let ofAudience = try await reported("audiences: [ledger]")
      #expect(ofAudience == [token])
      #expect(try await reported(clients) == [attestation])
      #expect(try await reported("audiences: [ledger], \(clients)") == [token, attestation])
    }
  }

  @Test(
    "A certificate's validity is checked, with a warning 14 days before its end",
    arguments: [
      (-2, "failed: tls.cert_file: NAME is not valid before START"),
      (350, nil),
      (352, "warning: tls.cert_file: NAME expires in 13 days, on END"),
      (366, "failed: tls.cert_file: NAME expired on END"),
    ])
  func times(_ days: Int, _ expected: String?) async throws {
    try await Bench.with { bench in
      let certificate = try Bench.authority.get().server.certificate
      let text = expected?.replacingOccurrences(of: "NAME", with: certificate.subject)
        .replacingOccurrences(of: "START", with: certificate.notBefore.description)
        .replacingOccurrences(of: "END", with: certificate.notAfter.description)
      #expect(try await findings(bench, at: Bench.now.advanced(by: Bench.day * days)) == [text].compactMap(\.self))
    }
  }

  @Test("A chain in order passes; one out of order is reported with the two certificates that do not match")
  func chain() async throws {
    try await Bench.with { bench in
      let authority = try Bench.authority.get()
      let (leaf, issuer) = (authority.server.certificate, authority.tlsAuthority.certificate)
      let other = authority.receiptRoot.certificate
      try bench.write(bench.pem(leaf, issuer), to: "server.pem")
      #expect(try await findings(bench) == [])
      try bench.write(bench.pem(leaf, other, issuer), to: "server.pem")
      #expect(
        try await findings(bench) == [
          "failed: tls.cert_file: certificate 2 (\(other.subject)) did not issue number 1 "
            + "(\(leaf.subject)): subject issuer mismatch"
        ])
    }
  }

  @Test("A key of another certificate, and files without a certificate or key, fail at their setting")
  func mismatch() async throws {
    try await Bench.with { bench in
      let authority = try Bench.authority.get()
      try bench.write(authority.receiptSigner.key.pkcs8PEM, to: "server.key")
      #expect(
        try await findings(bench) == [
          "failed: tls.key_file: DIR/server.key: is not the key of the certificate in DIR/server.pem"
        ])
      try bench.write("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", to: "server.key")
      let broken = try await findings(bench)
      #expect(broken.count == 1 && broken.first?.contains("holds no usable unencrypted PEM private key") == true)
      try bench.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", to: "server.pem")
      let both = try await findings(bench)
      #expect(both.count == 1 && both.first?.hasPrefix("failed: tls.cert_file: DIR/server.pem: holds no") == true)
    }
  }

  @Test("A key that other users can write causes a warning")
  func permissions() async throws {
    try await Bench.with { bench in
      try bench.write(try Bench.authority.get().server.key.pkcs8PEM, to: "server.key", mode: 0o620)
      #expect(
        try await findings(bench) == [
          "warning: tls.key_file: users other than the owner can write DIR/server.key (mode 0620)"
        ])
    }
  }

  @Test("An authority for client certificates must be a CA certificate")
  func clientAuthority() async throws {
    try await Bench.with { bench in
      #expect(try await findings(bench, "debug_mtls: { client_ca_file: tls-ca.pem }") == [])
      let leaf = try Bench.authority.get().server.certificate.subject
      #expect(
        try await findings(bench, "debug_mtls: { client_ca_file: server.pem }") == [
          "failed: debug_mtls.client_ca_file: \(leaf) is not a CA certificate: client certificates that it "
            + "issued are refused"
        ])
    }
  }

  @Test("Each client authority needs a list of revoked certificates that it signed and that is not out of date")
  func revocationLists() async throws {
    try await Bench.with { bench in
      let root = try Bench.authority.get().attestationRoot
      let other = try Bench.authority.get().receiptRoot
      func list(_ issuer: SigningIdentity, until days: Int64 = 9) throws -> String {
        let end = Bench.now.advanced(by: .seconds(days * 86400))
        let entry = RevocationListTemplate.Entry(serialNumber: [7], revokedAt: Bench.now)
        return try RevocationListTemplate(entries: [entry], number: 1, thisUpdate: Bench.now, nextUpdate: end)
          .signed(by: issuer.certificate, key: issuer.key)
      }
      try bench.write(bench.pem(root.certificate, other.certificate), to: "ca.pem")
      let extra = "debug_mtls: { client_ca_file: ca.pem, crl_file: crl.pem }"
      try bench.write(list(root) + list(other), to: "crl.pem")
      #expect(try await findings(bench, extra) == [])
      _ = try ListenerFiles(of: bench.settings(extra)).load()
      try bench.write(list(root), to: "crl.pem")
      let missing = try await findings(bench, extra)
      #expect(
        missing.count == 1 && missing[0].hasPrefix("failed: debug_mtls.crl_file: ")
          && missing[0].contains("has no list that \(other.certificate.subject) signed"), "\(missing)")
      #expect(throws: StartError.self) { _ = try ListenerFiles(of: bench.settings(extra)).load() }
      try bench.write(list(root) + list(other, until: -1), to: "crl.pem")
      let late = try await findings(bench, extra)
      #expect(late.count == 1 && late[0].contains("was due") && late[0].contains(other.certificate.subject))
      // The handshake uses the valid one of two.
      try bench.write(list(root) + list(other) + list(other, until: -1), to: "crl.pem")
      #expect(try await findings(bench, extra) == [])
    }
  }

  @Test("An intermediate authority without its issuer is refused")
  func intermediateAuthority() async throws {
    try await Bench.with { bench in
      let authority = try Bench.authority.get()
      let (lower, upper) = (authority.attestationIntermediate.certificate, authority.attestationRoot.certificate)
      try bench.write(bench.pem(lower), to: "ca.pem")
      let extra = "debug_mtls: { client_ca_file: ca.pem }"
      let reason = "is an intermediate CA and its issuer is not in the file: all certificates are refused"
      #expect(
        try await findings(bench, extra) == ["failed: debug_mtls.client_ca_file: \(lower.subject) \(reason)"])
      let settings = try bench.settings(extra)
      #expect { _ = try ListenerFiles(of: settings).load() } throws: { error in
        (error as? StartError)?.key == "debug_mtls.client_ca_file"
          && (error as? StartError)?.hint.contains("debug_mtls.partial_chain: true") == true
      }
      // The setting accepts it, and nothing else that is refused.
      let partial = "debug_mtls: { client_ca_file: ca.pem, partial_chain: true }"
      #expect(try await findings(bench, partial) == [])
      _ = try ListenerFiles(of: bench.settings(partial)).load()
      #expect(
        try await findings(bench, "debug_mtls: { client_ca_file: server.pem, partial_chain: true }").count == 1)
      #expect(
        try await findings(bench, "debug_mtls: { client_ca_file: ca.pem, partial_chain: false }")
          == ["failed: debug_mtls.client_ca_file: \(lower.subject) \(reason)"])
      try bench.write(bench.pem(lower, upper), to: "ca.pem")
      #expect(try await findings(bench, extra) == [])
      _ = try ListenerFiles(of: settings).load()
    }
  }

  @Test("An additional certificate without a DNS name is reported, and prevents the start")
  func namelessCertificate() async throws {
    try await Bench.with { bench in
      let signer = try Bench.authority.get().receiptSigner
      try bench.write(bench.pem(signer.certificate), to: "further.pem")
      try bench.write(signer.key.pkcs8PEM, to: "further.key")
      let settings = try bench.settings(
        """
        tls:
          cert_file: server.pem
          key_file: server.key
          certificates: [{ cert_file: further.pem, key_file: further.key }]
        """, without: "tls")
      let reason = "\(signer.certificate.subject) has no DNS name (subjectAltName): it would never be selected"
      #expect(
        try await bench.findings(settings).filter { $0.contains("certificates[0]") }
          == ["failed: tls.certificates[0].cert_file: \(reason)"])
      #expect { _ = try ListenerFiles(of: settings).load() } throws: { error in
        (error as? StartError)?.reason == reason
      }
    }
  }

  @Test("The key for the exchange of receipts is read, and what follows from a metric is said")
  func developerKey() async throws {
    try await Bench.with { bench in
      func extra(_ more: String) -> String {
        """
        app_attest:
          apps:
            - { team_id: AAABBBCCC1, bundle_id: com.example.app, risk: { key_file: key.p8, key_id: ABCDE12345\(more) } }
        """
      }
      let good = try P256PrivateKey().pkcs8PEM
      try bench.write(good, to: "key.p8")
      for (more, text) in [
        ("", "metrics are only observed"), (", threshold: 3, action: refuse", "metrics above 3: refused"),
        (
          ", threshold: 3, action: revoke, when_unknown: refuse",
          "metrics above 3: revoked; keys without a metric are refused"
        ),
      ] {
        let results = await Preflight(try bench.settings(extra(more)), store: nil, at: Bench.now).run()
        let found = results.first { $0.key == "app_attest.apps[0].risk.key_file" }
        #expect(found?.outcome == .passed)
        #expect(found?.text == "key ABCDE12345 of team AAABBBCCC1 for com.example.app: \(text)")
      }
      // The beginning is that of a key on P-256, and the rest is none.
      var lines = good.split(separator: "\n").map(String.init)
      lines[2] = String(lines[2].reversed())
      try bench.write(lines.joined(separator: "\n") + "\n", to: "key.p8")
      let reported = try await findings(bench, extra(""))
      #expect(reported.count == 1 && reported[0].hasPrefix("failed: app_attest.apps[0].risk.key_file: DIR/key.p8: "))
    }
  }

  @Test("What follows from the risk of Android devices is said, at the setting that turns it on")
  func androidRisk() async throws {
    try await Bench.with { bench in
      let signer = String(repeating: "ab", count: 32)
      for (members, key, text) in [
        ("threshold: 5", "threshold", "keys of one device are only counted"),
        ("threshold: 5, action: revoke", "threshold", "more than 5 keys of one device: revoked"),
        ("action: refuse, max_patch_age: 365d", "max_patch_age", "patches older than 365 days: refused"),
        (
          "threshold: 1, action: refuse, max_patch_age: 40d", "threshold",
          "more than 1 keys of one device: refused; patches older than 40 days: refused"
        ),
      ] {
        let extra = """
          app_attest:
            apps:
              - { team_id: AAABBBCCC1, bundle_id: com.example.app }
              - { platform: android, package: com.example.app, signers: [\(signer)], risk: { \(members) } }
          """
        let results = await Preflight(try bench.settings(extra), store: nil, at: Bench.now).run()
        let found = results.first { $0.key == "app_attest.apps[1].risk.\(key)" }
        #expect(found?.outcome == .passed)
        #expect(found?.text == "com.example.app: \(text)")
      }
    }
  }

  @Test("Roots of simulated devices and challenge keys are read")
  func others() async throws {
    try await Bench.with { bench in
      let extra = """
        app_attest:
          trust: { attestation_root_file: attestation-root.pem, receipt_root_file: receipt-root.pem }
          challenge_keys_file: challenge.keys
        """
      try bench.write("1 \(String(repeating: "ab", count: 32))\n", to: "challenge.keys")
      #expect(try await findings(bench, extra) == [])
      try bench.write("1 ab\n", to: "challenge.keys")
      try bench.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", to: "receipt-root.pem")
      let reported = try await findings(bench, extra)
      #expect(
        reported.map { $0.prefix { $0 != "/" } } == [
          "failed: app_attest.trust.receipt_root_file: DIR", "failed: app_attest.challenge_keys_file: DIR",
        ])
    }
  }
}
