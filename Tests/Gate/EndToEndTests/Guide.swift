import Foundation
import TestSupport
import Testing

/// A guide of the documentation, whose examples the tests run unchanged.
struct Guide {
  private let text: String

  /// - Parameter path: The path relative to the root of the project.
  init(_ path: String) throws {
    text = try ProjectFile.text(path)
  }

  static func service(_ name: String) throws -> Guide {
    try Guide("Sources/Gate/GateService/GateService.docc/\(name).md")
  }

  /// Returns the only code block in `language`.
  func block(_ language: String) throws -> String {
    let parts = text.components(separatedBy: "```\(language)\n")
    #expect(parts.count == 2, "one block in \(language)")
    let rest = try #require(parts.last)
    return String(rest[..<(try #require(rest.range(of: "```"))).lowerBound])
  }
}

extension String {
  /// Returns the text with all `changes` applied. Fails if a text to replace is missing, because the example has
  /// changed.
  func replacing(_ changes: KeyValuePairs<String, String>) throws -> String {
    var text = self
    for (old, new) in changes {
      try #require(text.contains(old), "\(old)")
      text = text.replacing(old, with: new)
    }
    return text
  }
}
