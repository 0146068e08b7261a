/// Collects the lines that a process writes.
public final class LineLog: Sendable {
  struct Content: Sendable {
    var lines: [String] = []
    var partial: [UInt8] = []
    var hasEnded = false
    /// Whether the last line has no line break.
    var endsWithinLine = false
  }

  let content = Watched(Content())

  public var lines: [String] { content.value.lines }

  /// Returns the first past or future line that `matches` accepts.
  ///
  /// - Throws: `WaitedTooLong`, or `StreamEnded` if the stream ends without such a line.
  public func first(
    _ purpose: String, within limit: Duration = .seconds(30), where matches: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    let found: Result<String, StreamEnded> = try await content.wait(for: purpose, within: limit) { content in
      if let line = content.lines.first(where: matches) { return .success(line) }
      return content.hasEnded ? .failure(StreamEnded(purpose: purpose, lines: content.lines)) : nil
    }
    return try found.get()
  }

  /// Returns the first `count` past or future lines that `matches` accepts.
  ///
  /// - Throws: `WaitedTooLong`, also if the stream ends with fewer such lines.
  public func first(
    _ count: Int, _ purpose: String, within limit: Duration = .seconds(30),
    where matches: @escaping @Sendable (String) -> Bool
  ) async throws -> [String] {
    try await content.wait(for: purpose, within: limit) { content in
      let found = content.lines.filter(matches).prefix(count)
      return found.count == count ? Array(found) : nil
    }
  }

  /// Waits for the end of the stream and returns all lines.
  public func all(within limit: Duration = .seconds(30)) async throws -> [String] {
    try await content.wait(for: "the end of the stream", within: limit) { $0.hasEnded ? $0.lines : nil }
  }

  /// Waits for the end of the stream and returns its complete text.
  public func text(within limit: Duration = .seconds(30)) async throws -> String {
    try await content.wait(for: "the end of the stream", within: limit) { content in
      guard content.hasEnded else { return nil }
      return content.lines.joined(separator: "\n") + (content.lines.isEmpty || content.endsWithinLine ? "" : "\n")
    }
  }

  /// Returns the first `count` lines, or fewer if the stream ends before.
  public func first(_ count: Int, within limit: Duration = .seconds(30)) async throws -> [String] {
    try await content.wait(for: "\(count) lines", within: limit) { content in
      content.hasEnded || content.lines.count >= count ? Array(content.lines.prefix(count)) : nil
    }
  }

  func append(_ bytes: some Sequence<UInt8>) {
    content.update { content in
      content.partial.append(contentsOf: bytes)
      while let end = content.partial.firstIndex(of: UInt8(ascii: "\n")) {
        content.lines.append(String(decoding: content.partial[..<end], as: UTF8.self))
        content.partial.removeSubrange(...end)
      }
    }
  }

  func end() {
    content.update { content in
      content.endsWithinLine = !content.partial.isEmpty
      if !content.partial.isEmpty { content.lines.append(String(decoding: content.partial, as: UTF8.self)) }
      content.partial = []
      content.hasEnded = true
    }
  }
}

public struct StreamEnded: Error, CustomStringConvertible {
  let purpose: String
  let lines: [String]

  public var description: String {
    "the stream ended before \(purpose); its lines:\n\(lines.joined(separator: "\n"))"
  }
}
