internal import Commands
internal import Foundation
internal import OIDCClient

/// What kubectl reads from its credential plugin: `ExecCredential` of client.authentication.k8s.io.
struct ExecCredential: Encodable {
  /// The versions that have the same form. kubectl names the one it expects in `KUBERNETES_EXEC_INFO`.
  static let versions = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
  /// The variable has the certificates of the cluster in it if kubectl was told so.
  private static let longestRequest = 1 << 18

  struct Status: Encodable {
    let token: String
    /// RFC 3339, in UTC; left out if the token is used until the cluster refuses it.
    let expirationTimestamp: String?
  }

  let apiVersion: String
  let kind = "ExecCredential"
  let status: Status

  private enum CodingKeys: String, CodingKey { case apiVersion, kind, status }

  /// Answers in the version that `environment` asks for.
  init(token: String, expiresAt: Date?, environment: [String: String]) throws(Failure) {
    apiVersion = try Self.version(environment["KUBERNETES_EXEC_INFO"])
    let isFinite = expiresAt.map { $0 < .distantFuture } ?? false
    status = Status(token: token, expirationTimestamp: isFinite ? expiresAt.map { $0.formatted(.iso8601) } : nil)
  }

  private static func version(_ request: String?) throws(Failure) -> String {
    struct Request: Decodable { let apiVersion: String }
    guard let request, !request.isEmpty else { return versions[0] }
    let bytes = Array(request.utf8)
    guard bytes.count <= longestRequest, let found = try? ProviderJSON.decode(Request.self, from: bytes) else {
      throw Failure(.badData, "KUBERNETES_EXEC_INFO is no ExecCredential", hint: "kubectl sets it; leave it unset")
    }
    guard let version = versions.first(where: { $0 == found.apiVersion }) else {
      throw Failure(
        .usage, "kubectl asks for an ExecCredential of \(found.apiVersion.prefix(100))",
        hint: "write apiVersion: \(versions[0]) in the kubeconfig")
    }
    return version
  }
}
