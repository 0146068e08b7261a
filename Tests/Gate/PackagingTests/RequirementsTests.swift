import Foundation
import TestSupport
import Testing

/// Compares `Requirements.md` with the numbers in the names of the tests.
@Suite("The list of requirements")
struct RequirementsTests {
  /// The text of each row of the article, by its number.
  private static func rows() throws -> [String: String] {
    let text = try ProjectFile.text("Sources/Gate/GateService/GateService.docc/Requirements.md")
    let rows = text.matches(of: /(?m)^\| ([A-Z]-S?\d{1,3}[A-Z]?) \| (.+) \|$/).map {
      (String($0.output.1), String($0.output.2))
    }
    return try Dictionary(rows) { first, second in throw Repeated(rows: [first, second]) }
  }

  private struct Repeated: Error { let rows: [String] }

  /// The numbers at the beginning of a text of a test: its name, or the name of one of its cases.
  private static func numbers(in source: String) -> Set<String> {
    var numbers: Set<String> = []
    for match in source.matches(of: /"((?:[A-Z]-S?\d{1,3}[A-Z]?(?:, | and | to | ))+)/) {
      for number in match.output.1.matches(of: /[A-Z]-S?\d{1,3}[A-Z]?/) { numbers.insert(String(number.output)) }
    }
    return numbers
  }

  private static func tested() throws -> Set<String> {
    let folder = ProjectFile.path("Tests")
    var numbers: Set<String> = []
    for file in try FileManager.default.subpathsOfDirectory(atPath: folder) where file.hasSuffix(".swift") {
      // This file has examples of its own.
      if file.hasSuffix("/RequirementsTests.swift") { continue }
      numbers.formUnion(Self.numbers(in: try String(contentsOfFile: folder + "/" + file, encoding: .utf8)))
    }
    return numbers
  }

  @Test("The list has a row for each number in a test's name, and marks the numbers without a test")
  func rows() throws {
    let (rows, tested) = (try Self.rows(), try Self.tested())
    #expect(rows.count > 100)
    #expect(tested.subtracting(rows.keys).sorted() == [])
    for (number, text) in rows {
      #expect(text.contains("No test: ") == !tested.contains(number), "\(number)")
      #expect(text.hasSuffix("."), "\(number)")
    }
  }

  @Test("One number or several are found at the beginning of a name, and no others")
  func beginnings() {
    let source = #"@Test("A-081 a") "X-040, X-041 b" "B-023 and B-024 c" "see A-083" "A-S01 to A-S03 d" "D-05A e""#
    #expect(Self.numbers(in: source) == ["A-081", "X-040", "X-041", "B-023", "B-024", "A-S01", "A-S03", "D-05A"])
  }
}
