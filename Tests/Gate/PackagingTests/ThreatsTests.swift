import Foundation
import TestSupport
import Testing

/// Checks `Threats.md`, which names a test for each promise.
@Suite("The list of threats")
struct ThreatsTests {
  private static let list = Result<String, any Error> {
    try ProjectFile.text("Sources/Gate/GateService/GateService.docc/Threats.md")
  }

  /// Returns the folder of a test target, which is in one of the rooms.
  private static func folder(of target: String) throws -> String {
    let tests = ProjectFile.path("Tests")
    let folders = try FileManager.default.contentsOfDirectory(atPath: tests).map { "\(tests)/\($0)/\(target)" }
    return try #require(folders.first(where: FileManager.default.fileExists(atPath:)), "\(target)")
  }

  /// Returns target, suite and function of each test that the text names.
  private static func named(in text: String) -> Set<[String]> {
    Set(
      text.matches(of: /`(\w+)\/(\w+)\/(\w+)\(\)`/).map {
        [String($0.output.1), String($0.output.2), String($0.output.3)]
      })
  }

  /// Returns whether a file of the target declares the suite and, after it, the function as a test.
  private static func exists(_ name: [String]) throws -> Bool {
    let folder = try folder(of: name[0])
    return try FileManager.default.subpathsOfDirectory(atPath: folder).contains { file in
      guard file.hasSuffix(".swift") else { return false }
      let text = try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
      let suites = ["struct", "class", "extension"].compactMap { text.firstRange(of: "\($0) \(name[1]) ")?.lowerBound }
      guard let start = suites.min(), let function = text[start...].firstRange(of: "func \(name[2])(") else {
        return false
      }
      // The attribute is in the text directly before the function, after the member before.
      let before = text[start..<function.lowerBound]
      return before[(before.ranges(of: "\n  }\n").last?.upperBound ?? start)...].contains("@Test")
    }
  }

  @Test("Every row names an existing test")
  func rows() throws {
    let text = try Self.list.get()
    let rows = text.split(separator: "\n").filter { $0.hasPrefix("| **") }
    #expect(rows.count >= 20)
    for row in rows { #expect(!Self.named(in: String(row)).isEmpty, "\(row.prefix(60))") }
    for name in Self.named(in: text) {
      #expect(try Self.exists(name), "\(name.joined(separator: "/"))")
    }
  }

  @Test(
    "A missing test is detected",
    arguments: [["PackagingTests", "ThreatsTests", "gone"], ["PackagingTests", "Gone", "rows"]])
  func twin(_ name: [String]) throws {
    #expect(try !Self.exists(name))
  }
}
