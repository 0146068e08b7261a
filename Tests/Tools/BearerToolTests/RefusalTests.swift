import Foundation
import TestSupport
import Testing

@Suite("bearer refuses", .timeLimit(.minutes(4)))
struct RefusalTests {
  /// One thing that is wrong, and the code that names it.
  struct Case: Sendable, CustomTestStringConvertible {
    let fault: String
    let code: String
    let exit: Int32
    /// How long the sign-in waits, where the port waits past what is wrong.
    let timeout: Int

    init(_ fault: String, _ code: String, _ exit: Int32 = 77, timeout: Int = 20) {
      (self.fault, self.code, self.exit, self.timeout) = (fault, code, exit, timeout)
    }

    var testDescription: String { fault }
  }

  private static let cases = [
    Case("alg_none", "algorithm_refused"), Case("hs256_public_key", "algorithm_refused"),
    Case("other_key_type", "algorithm_refused"), Case("unknown_kid", "unknown_key"),
    Case("no_kid_two_keys", "ambiguous_key"), Case("wrong_iss", "wrong_issuer"), Case("wrong_aud", "wrong_audience"),
    Case("wrong_azp", "wrong_authorized_party"), Case("expired", "token_expired"),
    Case("future_iat", "wrong_issue_time"), Case("wrong_nonce", "wrong_nonce"),
    Case("wrong_at_hash", "wrong_access_token_hash"), Case("bad_signature", "wrong_signature"),
    Case("redirect_other_iss", "wrong_redirect_issuer"), Case("redirect_no_iss", "wrong_redirect_issuer"),
    Case("wrong_state", "wrong_state", timeout: 2), Case("discovery_other_issuer", "discovery_of_another_issuer", 76),
    Case("discovery_too_large", "document_too_large", 76), Case("jwks_too_large", "document_too_large", 76),
    Case("token_response_too_large", "document_too_large", 76), Case("token_redirect", "redirect_refused", 76),
    Case("token_not_json", "answer_malformed", 76), Case("wrong_token_type", "wrong_token_type", 76),
    Case("no_id_token", "answer_malformed", 76), Case("token_500", "server_error", 75),
    Case("token_503_retry_after", "server_error", 75), Case("token_429_retry_after", "server_error", 75),
    Case("invalid_grant", "invalid_grant"), Case("invalid_client", "invalid_client"),
    Case("token_answer_lost", "answer_lost", 76),
  ]

  @Test("C-016 and C-023 Each fault of a provider has its code, and without it the sign-in succeeds")
  func faults() async throws {
    try await withHostileProvider { shell, provider in
      for item in Self.cases {
        try await provider.control(#"{"reset": true, "fault": "\#(item.fault)"}"#)
        let login = try await shell.browse("login --timeout \(item.timeout) work")
        #expect(login.fault == item.code && login.code == item.exit, "\(item.fault): \(login)")
        #expect(login.errors.last?.hasPrefix("hint: ") == true, "\(item.fault): \(login)")
        #expect(try await shell.run("token work").fault == "not_signed_in", "\(item.fault)")
      }
      try await provider.control(#"{"reset": true}"#)
      #expect(try await shell.browse().code == 0)
    }
  }

  @Test func `a failure of the server exits 75 at any status, with or without a code of its own`() async throws {
    try await Places.withTemporaryFolder { folder in
      let server = try DrippingServer()
      defer { server.stop() }
      let shell = BearerShell(folder)
      try shell.configure(["work": ["issuer: \(server.base)", "client_id: app", "password_grant: true", "dpop: off"]])
      let metadata =
        #"{"issuer":"BASE","token_endpoint":"BASE/token","authorization_endpoint":"BASE/a","jwks_uri":"BASE/keys"}"#
      // Without a document, the token endpoint answers 404 and says nothing.
      server.mend(with: ["/.well-known/openid-configuration": metadata])
      for code in ["server_error", "server_error", "temporarily_unavailable"] {
        let login = try await shell.run("login --username user work", input: "x\n")
        #expect(login.code == 75 && login.fault == code, "\(login)")
        #expect(login.errors.last?.hasPrefix("hint: try again later") == true, "\(login)")
        let isFirst = server.paths.count { $0 == "/token" } == 1
        server.mend(with: ["/token": #"{"error":"\#(isFirst ? "server_error" : "temporarily_unavailable")"}"#])
      }
    }
  }

  @Test("C-05A A token of nearly 64 KiB works")
  func large() async throws {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"fault": "large_token"}"#)
      #expect(try await shell.browse().code == 0)
      let token = try await shell.run("token work")
      #expect(token.code == 0 && token.output[0].utf8.count > 60_000)
    }
  }

  @Test(
    "T-31, C-021, C-052 and C-058 A certificate that is self-signed, expired or another's is refused",
    arguments: [
      "self_signed", "expired", "other_host",
    ])
  func certificates(kind: String) async throws {
    try await Places.withTemporaryFolder { folder in
      let provider = try await HostileProvider("--certificate", kind)
      let shell = BearerShell(folder)
      try shell.configure(["work": provider.entry("ca_file: \(provider.description.ca_file)")])
      let check = try await shell.run("providers check --json work")
      #expect(check.code == 1 && check.output[0].contains(#""code":"provider_untrusted""#), "\(check)")
      let login = try await shell.signIn(provider)
      #expect(login.code == 76 && login.fault == "provider_untrusted", "\(login)")
      try await provider.stop()
    }
  }

  @Test("C-058 A pinned key is required, and the authority is trusted only where it is named")
  func pins() async throws {
    try await Places.withTemporaryFolder { folder in
      let provider = try await HostileProvider("--certificate", "good")
      let shell = BearerShell(folder)
      let trusted = provider.entry("ca_file: \(provider.description.ca_file)")
      try shell.configure(["work": trusted])
      #expect(try await shell.signIn(provider).code == 0)
      let port = try #require(URL(string: provider.description.issuer)?.port)
      let pin = try await ChildProcess.run(
        "/bin/sh",
        [
          "-c",
          "openssl s_client -connect localhost:\(port) </dev/null 2>/dev/null | openssl x509 -pubkey -noout"
            + " | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64",
        ])
      try shell.configure(["work": trusted + ["pins: [\"sha256/\(pin.output[0])\"]"]])
      #expect(try await shell.signIn(provider).code == 0)
      let other = "sha256/" + Data(count: 32).base64EncodedString()
      try shell.configure(["work": trusted + ["pins: [\"\(other)\"]"]])
      // What the provider was asked for: a request that it received would be there.
      func asked() async throws -> [String] {
        try await ChildProcess.run(
          "/usr/bin/curl",
          ["-s", "--cacert", provider.description.ca_file, provider.description.issuer + "/control"]
        ).output
      }
      let before = try await asked()
      let refused = try await shell.signIn(provider)
      #expect(refused.code == 76 && refused.fault == "provider_untrusted", "\(refused)")
      #expect(try await asked() == before && before.joined().contains("paths"))
      try shell.configure(["work": provider.entry()])
      #expect(try await shell.signIn(provider).fault == "provider_untrusted")
      try await provider.stop()
    }
  }

  @Test func `the port of the browser answers the one redirect, and nothing else`() async throws {
    try await withHostileProvider { shell, provider in
      let login = try shell.start("login --no-browser --timeout 90 work")
      let address = try await login.errors.first("the address") { $0.hasPrefix("http") }
      let (jar, target) = try await shell.authorize(address)
      let base = try #require(target.split(separator: "/callback").first)
      func status(_ options: String...) async throws -> String {
        let run = try await ChildProcess.run(
          "/usr/bin/curl", ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "10", "-b", jar] + options)
        return run.output.joined()
      }
      #expect(try await status("\(base)/favicon.ico") == "404")
      #expect(try await status("-X", "POST", target) == "404")
      #expect(try await status("-H", "Host: evil.example", target) == "404")
      #expect(try await status("-H", "Sec-Fetch-Mode: no-cors", target) == "404")
      // The answer is held until the sign-in is over; a second one is refused meanwhile.
      let before = try await provider.control(#"{"hold_tokens": true}"#)
      async let first = status(target)
      try await provider.wait("a request for tokens") { $0.tokenRequests > before.tokenRequests }
      #expect(try await status(target) == "410")
      try await provider.control(#"{"hold_tokens": false}"#)
      #expect(try await first == "200")
      #expect(try await login.exit() == .code(0))
      let warnings = try await login.errors.all().filter { $0.hasPrefix("warning: ") }
      #expect(warnings.filter { $0.contains("foreign_request") }.count == 4, "\(warnings)")
      #expect(warnings.filter { $0.contains("second_request") }.count == 1, "\(warnings)")
    }
  }

  @Test func `an unknown key leads to one more fetch of the keys, and a new key of the provider is found`() async throws
  {
    try await withHostileProvider { shell, provider in
      try await provider.control(#"{"fault": "unknown_kid"}"#)
      #expect(try await shell.browse().fault == "unknown_key")
      #expect(try await provider.control().jwks_fetches == 2)
      try await provider.control(#"{"reset": true, "fault": "keys_rotated"}"#)
      #expect(try await shell.browse().code == 0)
    }
  }
}
