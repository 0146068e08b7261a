public import Transport

/// A part of the admin server: the operations on one kind of resource.
public protocol AdminResource: Sendable {
  var operations: [AdminOperation] { get }
}

/// An operation of the admin server.
public struct AdminOperation: Sendable {
  public typealias Answer = @Sendable (AdminRequest) async throws(AdminError) -> Response

  public let method: String
  /// The path, such as `/v1/keys/{key}/revoke`. A segment in braces matches any one segment.
  public let path: String
  /// A sentence about what the operation does.
  public let summary: String
  /// The accepted query parameters. Others are refused.
  public let parameters: [AdminParameter]
  public let answers: AdminAnswers
  let answer: Answer

  /// - Parameter answer: Runs outside the event loops and may block.
  public init(
    _ method: String, _ path: String, _ summary: String, parameters: [AdminParameter] = [],
    answers: AdminAnswers, answer: @escaping Answer
  ) {
    self.method = method
    self.path = path
    self.summary = summary
    self.parameters = parameters
    self.answers = answers
    self.answer = answer
  }

  /// Returns the segments that match those in braces; `nil` if `path` does not match.
  func values(in path: String) -> [String: String]? {
    let pattern = self.path.split(separator: "/", omittingEmptySubsequences: false)
    let segments = path.split(separator: "/", omittingEmptySubsequences: false)
    guard pattern.count == segments.count else { return nil }
    var values: [String: String] = [:]
    for (expected, segment) in zip(pattern, segments) {
      if expected.hasPrefix("{"), !segment.isEmpty {
        values[String(expected.dropFirst().dropLast())] = String(segment)
      } else if expected != segment {
        return nil
      }
    }
    return values
  }
}
