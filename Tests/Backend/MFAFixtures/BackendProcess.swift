import Foundation
public import TestSupport

/// The built backend as a process.
public struct BackendProcess: Sendable {
  public let process: ChildProcess
  /// The port; `nil` if the backend listens on a Unix socket.
  public let port: UInt16?

  /// Starts `mfa-backend run` and waits until it listens.
  ///
  /// - Parameter log: A file that receives a copy of the log.
  public init(
    _ arguments: [String], environment: [String: String?] = [:], in folder: String? = nil, log: String? = nil
  ) async throws {
    let command = try [Places.product("mfa-backend"), "run"] + arguments
    if let log {
      process = try ChildProcess(
        "/bin/bash", ["-c", #"exec "$@" 2> >(exec tee "$LOG" >&2)"#, "bash"] + command,
        environment: environment.merging(["LOG": log]) { $1 }, in: folder)
    } else {
      process = try ChildProcess(command[0], Array(command.dropFirst()), environment: environment, in: folder)
    }
    let line = try await process.errors.first("the backend's port") { $0.contains(#""message":"listening""#) }
    port = try JSONValue(Data(line.utf8))["port"]?.int.flatMap { UInt16(exactly: $0) }
  }

  /// Returns the arguments for a gate whose keys are in a file.
  public static func trusting(_ gate: TestGate) -> [String] {
    ["--gate-jwks", gate.keysFile, "--gate-issuer", TestGate.issuer, "--audience", TestGate.audience]
  }

  /// Stops the backend like an operator, and returns its exit status.
  public func stop() async throws -> ChildProcess.Exit {
    process.send(SIGTERM)
    return try await process.exit(within: .seconds(20))
  }
}

/// The answer that curl received.
public struct CurlAnswer: Sendable {
  public let status: Int
  public let body: JSONValue
  public let text: String

  public subscript(_ key: String) -> JSONValue? { body[key] }
}

/// Sends a request with curl.
public func curl(
  _ method: String, _ url: String, _ body: JSONValue? = nil, token: String? = nil, _ options: [String] = []
) async throws -> CurlAnswer {
  var arguments = ["--silent", "--show-error", "--max-time", "20", "--write-out", "\n%{http_code}", "-X", method]
  arguments += options
  if let token { arguments += ["-H", "Authorization: Bearer \(token)"] }
  if let body { arguments += ["-H", "Content-Type: application/json", "--data", body.encoded] }
  let run = try await ChildProcess.run(Places.tool("curl"), arguments + [url])
  let text = run.output.dropLast().joined(separator: "\n")
  return CurlAnswer(
    status: run.output.last.flatMap { Int($0) } ?? 0, body: (try? JSONValue(Data(text.utf8))) ?? .null, text: text)
}
