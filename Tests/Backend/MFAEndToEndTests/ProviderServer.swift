import Foundation
import GateProcesses
import MFAFixtures
import TestSupport

/// An identity provider with a web server on loopback, for its discovery document and its keys.
struct ProviderServer: Sendable {
  let provider: TestProvider
  let process: ChildProcess

  /// Serves the documents from `folder`.
  init(in folder: String) async throws {
    process = try ChildProcess(
      "/usr/bin/python3", ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder])
    let line = try await process.output.first("the provider's port") { $0.hasPrefix("Serving HTTP on") }
    let port = try line.split(separator: " ").compactMap { UInt16($0) }.first.orThrow("no port: \(line)")
    provider = TestProvider(issuer: "http://127.0.0.1:\(port)")
    let documents = [
      ".well-known/openid-configuration": """
      {"issuer":"\(provider.issuer)","authorization_endpoint":"\(provider.issuer)/authorize",\
      "token_endpoint":"\(provider.issuer)/token","jwks_uri":"\(provider.issuer)/keys.json",\
      "response_types_supported":["code"],"subject_types_supported":["public"],\
      "id_token_signing_alg_values_supported":["ES256"]}
      """,
      "keys.json": provider.jwks,
    ]
    for (name, text) in documents {
      let file = URL(filePath: folder + "/" + name)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
  }

  /// The options of a backend that trusts the provider.
  var options: [String] { ["--oidc-issuer", provider.issuer, "--oidc-audience", TestProvider.clientID] }
}

extension Optional {
  fileprivate func orThrow(_ reason: String) throws -> Wrapped {
    guard let self else { throw Unexpected(reason) }
    return self
  }
}
