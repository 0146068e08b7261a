import Foundation
import TestSupport
import Testing

@Suite("The documentation's links")
struct LinkTests {
  /// Returns the paths of all Markdown files, relative to the project's root.
  private static func articles() throws -> [String] {
    var paths = ["README.md"]
    for folder in [".github", "Sources", "Tests"] {
      let files = try FileManager.default.subpathsOfDirectory(atPath: ProjectFile.path(folder))
      paths += files.filter { $0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
    }
    return paths
  }

  /// Returns the text outside of fenced blocks.
  private static func prose(of text: String) -> String {
    text.components(separatedBy: "```").enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element).joined()
  }

  @Test("Every link leads to an existing file")
  func targets() throws {
    let articles = try Self.articles()
    #expect(articles.count > 20)
    for article in articles {
      let prose = Self.prose(of: try ProjectFile.text(article))
      let folder = article.split(separator: "/").dropLast().joined(separator: "/")
      let links = prose.matches(of: /\]\(([^)\s#]+)/).map { String($0.output.1) }.filter { !$0.contains(":") }
      let documents = prose.matches(of: /<doc:([\w-]+)>/).map { "\($0.output.1).md" }
      for target in links + documents {
        let path = ProjectFile.path(folder.isEmpty ? target : "\(folder)/\(target)")
        #expect(FileManager.default.fileExists(atPath: path), "\(article): \(target)")
      }
    }
  }
}
