import Foundation
import TestSupport
import Testing

@Suite("The documents")
struct LinkTests {
  /// Every Markdown file of the project, by its path from the root.
  private static func documents() throws -> [String] {
    let files = try #require(FileManager.default.enumerator(atPath: ProjectFile.root))
    return files.compactMap { $0 as? String }
      .filter { path in path.hasSuffix(".md") && !path.hasPrefix(".build") && !path.hasPrefix(".git/") }.sorted()
  }

  /// What `pattern` captures in the text outside fenced blocks.
  private static func captures(_ pattern: Regex<(Substring, Substring)>, in text: String) -> [String] {
    let prose = text.components(separatedBy: "\n```").enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)
    return prose.joined(separator: "\n").matches(of: pattern).map { String($0.output.1) }
  }

  @Test("link to files that exist")
  func relativeLinks() throws {
    var count = 0
    for document in try Self.documents() {
      let folder = ProjectFile.url(document).deletingLastPathComponent()
      for target in Self.captures(/\]\(([^)\s]+)\)/, in: try ProjectFile.text(document)) {
        let path = target.prefix { $0 != "#" }
        guard !path.isEmpty, !target.contains("://"), !target.hasPrefix("<") else { continue }
        count += 1
        #expect(
          FileManager.default.fileExists(atPath: folder.appending(path: String(path)).path), "\(document): \(target)")
      }
    }
    #expect(count > 30)
  }

  @Test("name articles of their own catalog")
  func articles() throws {
    var count = 0
    for document in try Self.documents() where document.contains(".docc/") {
      let folder = ProjectFile.url(document).deletingLastPathComponent()
      for name in Self.captures(/<doc:([A-Za-z]+)>/, in: try ProjectFile.text(document)) {
        count += 1
        #expect(
          FileManager.default.fileExists(atPath: folder.appending(path: name + ".md").path), "\(document): \(name)")
      }
    }
    #expect(count > 20)
  }

  @Test("begin with a front page of at most 220 lines")
  func frontPage() throws {
    #expect(try ProjectFile.text("README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 221)
  }
}
