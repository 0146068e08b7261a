public import Transport

/// A part of the admin server: the operations on one kind of thing.
public protocol AdminResource: Sendable {
  var operations: [AdminOperation] { get }
}

/// One thing that an operator can ask for.
public struct AdminOperation: Sendable {
  public typealias Answer = @Sendable (AdminRequest) async throws(AdminFault) -> Response

  public let method: String
  /// `/v1/keys/{key}/revoke`: a segment in braces stands for any one segment.
  public let path: String
  /// What it does, in a sentence.
  public let summary: String
  /// The query parameters that it knows. Others are refused.
  public let parameters: [String]
  public let answers: AdminAnswers
  let answer: Answer

  /// - Parameter answer: runs on no event loop, and may wait.
  public init(
    _ method: String, _ path: String, _ summary: String, parameters: [String] = [],
    answers: AdminAnswers, answer: @escaping Answer
  ) {
    self.method = method
    self.path = path
    self.summary = summary
    self.parameters = parameters
    self.answers = answers
    self.answer = answer
  }

  /// What stands in the place of the segments in braces, if `path` is this operation's.
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
