import Foundation
import Wire
import TestSupport
import AttestClient

/// A provider that a Python program plays: well-behaved, except for one fault at a time.
final class HostileProvider: Sendable {
  struct Description: Decodable, Sendable {
    let issuer: String
    let public_client: String
    let confidential_client: String
    let post_client: String
    let secret: String
    let key_client: String
    let key_file: String
    let certificate_client: String
    let cert_file: String
    let cert_key_file: String
    let username: String
    let password: String
    let ca_file: String
    let faults: [String]
  }

  /// What was asked of it, and what it refused.
  struct Counters: Decodable, Sendable {
    let grants: [String: Int]
    let paths: [String: Int]
    let refresh_tokens: [String: Int]
    let refusals: [String: Int]
    let jwks_fetches: Int
    let revoked_families: Int

    var refreshes: Int { grants["refresh_token"] ?? 0 }
    /// Counted on arrival, before the delay of `delay_ms`.
    var tokenRequests: Int { paths["/token"] ?? 0 }
  }

  let description: Description
  private let process: ChildProcess

  /// Starts the program, by default with plain HTTP on loopback.
  init(_ options: String...) async throws {
    let program = ProjectFile.path("Tests/App/Programs/hostile_provider.py")
    process = try ChildProcess("/usr/bin/python3", [program] + (options.isEmpty ? ["--plain"] : options))
    let line = try await process.output.first("the provider's description") { $0.hasPrefix("{") }
    description = try JSONDecoder().decode(Description.self, from: Data(line.utf8))
  }

  /// The lines of an entry for its public client.
  func entry(_ more: String...) -> [String] {
    [
      "issuer: \(description.issuer)", "client_id: \(description.public_client)", "dpop: off",
      "scopes: [openid, offline_access]", "password_grant: true",
    ] + more
  }

  /// Changes its settings, as JSON, and returns the counters.
  @discardableResult
  func control(_ change: String = "{}") async throws -> Counters {
    if description.issuer.hasPrefix("https:") { return try await controlByCurl(change) }
    guard let url = URL(string: description.issuer + "/control") else { throw CancellationError() }
    let answer = try await URLSessionTransport().send(HTTPRequest(method: .post, url: url, body: Array(change.utf8)))
    guard answer.status == 200 else { throw Refused(text: String(decoding: answer.body, as: UTF8.self)) }
    return try JSONDecoder().decode(Counters.self, from: Data(answer.body))
  }

  /// The same by TLS, with the provider's own authority, which URLSession cannot trust alone.
  private func controlByCurl(_ change: String) async throws -> Counters {
    let run = try await ChildProcess.run(
      "/usr/bin/curl",
      ["-sS", "--fail-with-body", "--cacert", description.ca_file, "-d", change, description.issuer + "/control"])
    guard run.exit == .code(0) else { throw Refused(text: "\(run)") }
    return try JSONDecoder().decode(Counters.self, from: Data(run.output.joined().utf8))
  }

  /// Waits, for a minute at most, until its counters are so.
  func wait(_ what: String, until condition: (Counters) -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    while !condition(try await control()) {
      guard ContinuousClock.now < end else { throw Refused(text: "waited in vain for \(what)") }
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  private struct Refused: Error { let text: String }

  /// Ends it, with everything that it left.
  func stop() async throws {
    process.closeInput()
    _ = try await process.exit()
  }
}

/// Calls `body` with a provider and a `bearer` that has it as `work`.
func withHostileProvider(
  _ more: String..., body: (BearerShell, HostileProvider) async throws -> Void
) async throws {
  try await Places.withTemporaryFolder { folder in
    let provider = try await HostileProvider()
    let shell = BearerShell(folder)
    try shell.configure(["work": provider.entry() + more])
    try shell.write("#!/bin/sh\nexec curl -sSL -b '' --max-time 80 \"$1\"\n", to: "browser")
    try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder + "/browser")
    try await body(shell, provider)
    try await provider.stop()
  }
}

extension BearerShell {
  /// Signs in with the password grant.
  @discardableResult
  func signIn(_ provider: HostileProvider, _ account: String = "work") async throws -> Result {
    try await run(
      "login --username \(provider.description.username) \(account)", input: provider.description.password + "\n")
  }

  /// Signs in with a browser, which curl plays: it follows every redirect and keeps cookies.
  @discardableResult
  func browse(_ line: String = "login --timeout 90 work") async throws -> Result {
    try await run(line, environment: ["BROWSER": folder + "/browser"])
  }
}
