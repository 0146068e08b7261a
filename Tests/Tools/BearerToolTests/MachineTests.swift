import Foundation
import TestSupport
import Testing

@Suite("Machine accounts of bearer", .timeLimit(.minutes(3)))
struct MachineTests {
  /// An entry of each way to authenticate, at a provider that asks for client certificates.
  private func withMachines(_ body: (BearerShell, HostileProvider) async throws -> Void) async throws {
    try await Places.withTemporaryFolder { folder in
      let provider = try await HostileProvider("--client-certificates")
      let known = provider.description
      let shell = BearerShell(folder)
      try shell.write(known.secret + "\n", to: "secret")
      let common = [
        "issuer: \(known.issuer)", "ca_file: \(known.ca_file)", "grant: client_credentials", "dpop: off",
        "scopes: [files]",
      ]
      try shell.configure([
        "basic": common + ["client_id: \(known.confidential_client)", "client_secret_file: secret"],
        "post": common + ["client_id: \(known.post_client)", "client_secret_file: secret", "authentication: post"],
        "key": common + [
          "client_id: \(known.key_client)", "authentication: private_key_jwt", "private_key_file: \(known.key_file)",
        ],
        "certificate": common + [
          "client_id: \(known.certificate_client)", "authentication: tls_client_auth", "cert_file: \(known.cert_file)",
          "key_file: \(known.cert_key_file)",
        ],
        "bare": common + ["client_id: \(known.certificate_client)", "client_secret_file: secret"],
      ])
      try await body(shell, provider)
      try await provider.stop()
    }
  }

  @Test func `each way to authenticate leads to a token without a login, and only the right one`() async throws {
    try await withMachines { shell, provider in
      for name in ["basic", "post", "key", "certificate"] {
        let token = try await shell.run("token \(name)")
        #expect(token.code == 0 && token.output.count == 1 && token.errors.isEmpty, "\(name): \(token)")
        #expect(try await shell.run("token \(name)").output == token.output, "the stored one is used")
      }
      #expect(try await provider.control().grants == ["client_credentials": 4])
      let refused = try await shell.run("token bare")
      #expect(refused.code == 77 && refused.fault == "invalid_client", "\(refused)")
      let check = try await shell.run("providers check certificate")
      #expect(check.code == 0 && check.output.contains("  grants   client credentials"), "\(check)")
      #expect(check.output.contains { $0.hasPrefix("  presents the certificate ") && $0.contains(", valid for ") })
      // The hash of the certificate is in the token, and shown.
      let hash = try #require(check.output.firstMatch(in: "  presents the certificate "))
      let status = try await shell.run("status")
      #expect(status.output.contains { $0.hasPrefix("certificate  valid for") && $0.contains(hash) }, "\(status)")
      let json = try await shell.run("token --json certificate")
      #expect(json.output[0].contains(#""cnf":{"x5t#S256":"\#(hash)"}"#), "\(json)")
      // A certificate of an authority that the server does not know ends the handshake.
      try await ownCertificate(shell, provider)
      let stranger = try await shell.run("token certificate --rejected -", input: "x\n")
      #expect(stranger.code == 0, "the stored token is another one than the rejected: \(stranger)")
      try await shell.run("logout certificate")
      let alert = try await shell.run("token certificate")
      #expect(alert.code == 76 && alert.fault == "provider_untrusted", "\(alert)")
    }
  }

  /// Replaces the certificate of the entry by one that its client has signed itself.
  private func ownCertificate(_ shell: BearerShell, _ provider: HostileProvider) async throws {
    let made = try await ChildProcess.run(
      try Places.tool("openssl"),
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes", "-keyout", "own.key", "-out",
        "own.pem", "-subj", "/CN=stranger",
      ], in: shell.folder)
    #expect(made.exit == .code(0), "\(made)")
    let path = shell.folder + "/bearer.yaml"
    let text = try String(contentsOfFile: path, encoding: .utf8)
      .replacing(provider.description.cert_file, with: "own.pem")
      .replacing(provider.description.cert_key_file, with: "own.key")
    try shell.write(text, to: "bearer.yaml")
  }

  @Test func `of twenty processes one asks, a rejected token is replaced once, and a busy provider is left alone`()
    async throws
  {
    try await withMachines { shell, provider in
      let processes = try (0..<20).map { _ in try shell.start("token basic") }
      var tokens: Set<String> = []
      for process in processes {
        #expect(try await process.exit() == .code(0), "\(process.errors.lines)")
        tokens.formUnion(try await process.output.all())
      }
      #expect(tokens.count == 1)
      #expect(try await provider.control().grants == ["client_credentials": 1])
      let old = try #require(tokens.first)
      let next = try await shell.run("token basic --rejected -", input: old + "\n")
      #expect(next.code == 0 && next.output != [old], "\(next)")
      #expect(try await shell.run("token basic --rejected -", input: old + "\n").output == next.output)
      try await provider.control(#"{"fault": "token_429_retry_after", "retry_after": 900}"#)
      for _ in 0..<2 {
        let busy = try await shell.run("token basic --rejected -", input: next.output[0] + "\n")
        #expect(busy.code == 75 && busy.fault == "provider_busy", "\(busy)")
      }
      #expect(try await provider.control(#"{"fault": null}"#).grants == ["client_credentials": 3])
      // A person's options mean nothing here; a plain login asks at once.
      let device = try await shell.run("login --device basic")
      #expect(device.code == 64 && device.errors[0].contains("machine account"), "\(device)")
      let login = try await shell.run("login basic")
      #expect(login.code == 0 && login.output == ["signed in at basic as the client confidential-client"], "\(login)")
      let logout = try await shell.run("logout basic")
      #expect(logout.code == 0, "\(logout)")
      #expect(try await shell.run("status").output.contains("basic        a token is asked for when needed"))
    }
  }
}

extension [String] {
  /// The rest of the first line that begins with `prefix`, up to a comma.
  fileprivate func firstMatch(in prefix: String) -> String? {
    first { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count).prefix { $0 != "," }) }
  }
}
