import Foundation
public import SimulatedDevice
public import TestSupport

/// An `attest dev-apple` process in the place of Apple's data service.
public struct DataServiceProcess: Sendable {
  public let process: ChildProcess
  /// The value of `risk.endpoint`.
  public let endpoint: String

  /// Starts a service with the key of the authority in `folder`, which must exist.
  public init(_ folder: AuthorityFolder, _ options: String...) async throws {
    process = try ChildProcess(
      Places.product("attest"),
      ["dev-apple", "--authority", folder.path, "--listen", "127.0.0.1:0", "--json"] + options)
    let line = try await process.output.first("the URL of the data service") { $0.contains(#""url""#) }
    let port = try GateProcess.lastNumber(in: line, after: #""url":"http://"#)
    endpoint = "http://127.0.0.1:\(port)/v1/attestationData"
  }

  /// The statuses of the answers so far, in order.
  public var statuses: [Int] {
    process.output.lines.compactMap { try? JSONDecoder().decode(Answer.self, from: Data($0.utf8)).status }
  }

  private struct Answer: Decodable { let status: Int }

  /// The members of `risk` for a gate that uses this service.
  public func risk(_ policy: String) -> String {
    "key_file: \"DIR/developer-key.p8\", key_id: SIMULATED1, endpoint: \"\(endpoint)\"\(policy)"
  }
}
