/// One message for a person, with what to do about it.
public struct HintedMessage: Sendable, Hashable {
  let line: String
  let hint: String?

  /// - Parameters:
  ///   - line: The message with its mark, such as `error: `.
  ///   - hint: What to do, without a mark.
  public init(_ line: String, hint: String?) {
    self.line = line
    self.hint = hint
  }

  /// The lines of `messages`. A hint follows its message, or the last of several messages in a row that share it.
  public static func lines(_ messages: [HintedMessage]) -> String {
    let lines = messages.indices.flatMap { index -> [String] in
      let message = messages[index]
      let isShared = index + 1 < messages.count && messages[index + 1].hint == message.hint
      return [message.line] + (isShared ? [] : message.hint.map { ["hint: \($0)"] } ?? [])
    }
    return lines.joined(separator: "\n")
  }
}
