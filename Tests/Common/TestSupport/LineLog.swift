/// The lines that a process writes, as they come.
public final class LineLog: Sendable {
  struct Content: Sendable {
    var lines: [String] = []
    var partial: [UInt8] = []
    var hasEnded = false
    /// Whether the last line has no line end.
    var endsWithinLine = false
  }

  let content = Watched(Content())

  public var lines: [String] { content.value.lines }

  /// The first line, past or future, that `matches`.
  ///
  /// - Throws: `WaitedTooLong`, or `StreamEnded` if there will be none.
  public func first(
    _ purpose: String, within limit: Duration = .seconds(30), where matches: @escaping @Sendable (String) -> Bool
  ) async throws -> String {
    let found: Result<String, StreamEnded> = try await content.wait(for: purpose, within: limit) { content in
      if let line = content.lines.first(where: matches) { return .success(line) }
      return content.hasEnded ? .failure(StreamEnded(purpose: purpose, lines: content.lines)) : nil
    }
    return try found.get()
  }

  /// The first `count` lines, past or future, that match.
  ///
  /// - Throws: `WaitedTooLong`, also if the stream ends before.
  public func first(
    _ count: Int, _ purpose: String, within limit: Duration = .seconds(30),
    where matches: @escaping @Sendable (String) -> Bool
  ) async throws -> [String] {
    try await content.wait(for: purpose, within: limit) { content in
      let found = content.lines.filter(matches).prefix(count)
      return found.count == count ? Array(found) : nil
    }
  }

  /// All lines, once the stream has ended.
  public func all(within limit: Duration = .seconds(30)) async throws -> [String] {
    try await content.wait(for: "the end of the stream", within: limit) { $0.hasEnded ? $0.lines : nil }
  }

  /// Everything as it was written, once the stream has ended.
  public func text(within limit: Duration = .seconds(30)) async throws -> String {
    try await content.wait(for: "the end of the stream", within: limit) { content in
      guard content.hasEnded else { return nil }
      return content.lines.joined(separator: "\n") + (content.lines.isEmpty || content.endsWithinLine ? "" : "\n")
    }
  }

  /// The first `count` lines, or fewer if there are no more.
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
