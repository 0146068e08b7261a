import Foundation
import TestSupport
import Testing

/// The text of the guide, in the folder in `SALLYPORT_SEEDS`, otherwise in `../shared/seeds` next to the package. It is
/// not part of the project.
enum GuideText {
  static let absence: Comment = "the guide is missing (SALLYPORT_SEEDS)"
  static let isPresent = FileManager.default.fileExists(atPath: file.path)

  private static let folder =
    if let path = ProcessInfo.processInfo.environment["SALLYPORT_SEEDS"] {
      URL(fileURLWithPath: path)
    } else {
      ProjectFile.url("../shared/seeds")
    }
  private static let file = folder.appending(path: "004_a4076f5656fd0796.txt")

  /// Returns the blocks of Swift code in order, each with the line break after its last line.
  static func swiftBlocks() throws -> [String] {
    var blocks: [String] = []
    var block: String?
    for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false) {
      switch (block, line) {
      case (nil, "```swift"): block = ""
      case (let text?, "```"):
        blocks.append(text)
        block = nil
      case (let text?, _): block = text + line + "\n"
      case (nil, _): break
      }
    }
    return blocks
  }
}

@Suite("The guide's client that the tests compile")
struct GuideTextTests {
  @Test(
    "The client contains the unchanged code of the guide",
    .enabled(if: GuideText.isPresent, GuideText.absence),
    arguments: ["actor AppAttestManager {", "extension AppAttestManager {", "extension Data {"])
  func verbatim(firstLine: String) throws {
    let blocks = try GuideText.swiftBlocks().filter { $0.hasPrefix(firstLine + "\n") }
    let block = try #require(blocks.first)
    #expect(blocks.count == 1)
    let source = try Self.source()
    #expect(source.contains("\n" + block), "the compiled copy differs from the guide")
  }

  @Test(
    "The client's file contains nothing else but imports and comments",
    .enabled(if: GuideText.isPresent, GuideText.absence))
  func nothingElse() throws {
    var rest = try Self.source()
    for block in try GuideText.swiftBlocks() {
      if let range = rest.range(of: block) { rest.removeSubrange(range) }
    }
    let lines = rest.split(separator: "\n").filter { !$0.hasPrefix("import ") && !$0.hasPrefix("//") }
    #expect(lines.isEmpty, "\(lines)")
  }

  private static func source() throws -> String {
    try ProjectFile.text("Tests/App/GuideClient/AppAttestManager.swift")
  }
}
