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

  @Test("T-41 No text has characters that were encoded twice")
  func characters() throws {
    // The first byte of a character beyond ASCII, read as one, and the second one, in Latin-1 or Windows-1252.
    let twice = /[\u{C3}\u{E2}\u{F0}][\u{80}-\u{BF}\u{152}-\u{178}\u{2013}-\u{2122}]/
      .matchingSemantics(.unicodeScalar)
    #expect("\u{E2}\u{2020}\u{2019}".contains(twice) && "\u{F0}\u{178}".contains(twice) && !"→ ✅ ä".contains(twice))
    var count = 0
    for folder in ["Sources", "config", "scripts"] {
      for file in try FileManager.default.subpathsOfDirectory(atPath: ProjectFile.path(folder)) {
        let path = ProjectFile.path(folder) + "/" + file
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { continue }
        count += 1
        #expect(!text.contains(twice), "\(folder)/\(file)")
      }
    }
    #expect(count > 500)
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
