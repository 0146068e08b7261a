import Foundation
import TestSupport
import Transport

/// Runs `openssl s_client` as a client that can send any bytes.
struct RawClient: Sendable {
  let port: UInt16
  let authority: String
  var arguments: [String] = []

  init(_ gate: RunningGate, _ arguments: [String] = []) {
    port = gate.port
    authority = gate.certificateAuthority
    self.arguments = arguments
  }

  /// Opens a connection that sends the written bytes unchanged to the gate.
  func connect(_ host: String = "127.0.0.1") throws -> ChildProcess {
    let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    return try ChildProcess(
      Places.tool("openssl"),
      [
        "s_client", "-quiet", "-verify_quiet", "-verify_return_error", "-CAfile", authority, "-connect",
        place,
      ] + arguments)
  }

  /// Sends `bytes` and returns the answer after the gate has closed the connection.
  ///
  /// - Throws: if the gate does not close it within `limit`.
  func exchange(_ bytes: [UInt8], within limit: Duration = .seconds(15)) async throws -> RawAnswer {
    let process = try connect()
    defer { process.kill() }
    process.write(bytes)
    _ = try await process.exit(within: limit)
    let text = try await process.output.all().map { $0 + "\n" }.joined()
    guard let answer = RawAnswer(text: text) else {
      throw NoAnswer(output: text, errors: try await process.errors.all())
    }
    return answer
  }

  /// Sends `bytes` and returns the head of the answer while the connection stays open.
  func open(
    _ bytes: [UInt8], at host: String = "127.0.0.1"
  ) async throws -> (process: ChildProcess, head: [String]) {
    let process = try connect(host)
    process.write(bytes)
    _ = try await process.output.first("the end of the head") { $0 == "\r" }
    return (process, process.output.lines.prefix { $0 != "\r" }.map { $0.replacing("\r", with: "") })
  }
}

struct NoAnswer: Error {
  let output: String
  let errors: [String]
}

/// The answers of a gate on one connection until it closed the connection.
struct RawAnswer: Sendable {
  /// The first answer.
  let response: Response
  /// The number of answers.
  let count: Int

  /// Parses `text`, all received bytes including CRLF; `nil` if there is no complete head.
  init?(text: String) {
    guard let end = text.range(of: "\r\n\r\n") else { return nil }
    let lines = text[..<end.lowerBound].components(separatedBy: "\r\n")
    let words = lines[0].split(separator: " ")
    guard words.first == "HTTP/1.1", words.count > 1, let status = Int(words[1]) else { return nil }
    let fields = HeaderFields(
      lines.dropFirst().map { line in
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return HeaderFields.Field(
          name: String(parts[0]), value: (parts.last ?? "").trimmingCharacters(in: .whitespaces))
      })
    let length = fields.first("Content-Length").flatMap { Int($0) } ?? 0
    response = Response(
      status: status, headers: fields, body: Array(Array(text[end.upperBound...].utf8).prefix(length)))
    count = text.components(separatedBy: "HTTP/1.1 ").count - 1
  }
}
