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

  /// The numbers in the names of those tests that every run of `scripts/test` has. The condition of others, or of their
  /// suite, names the option that runs them.
  private static func numbersOfEveryRun(in source: String) -> Set<String> {
    let option = "scripts/test --"
    var (found, needsOption) = (Set<String>(), false)
    for (position, part) in source.components(separatedBy: "@Test").enumerated() {
      let attribute = position == 0 ? "" : part.components(separatedBy: "func ")[0]
      if !needsOption, !attribute.contains(option) { found.formUnion(numbers(in: part)) }
      // A suite's condition is that of the tests after it.
      let suite = part.matches(of: #/(?s)@Suite\b(.*?)\n *(?:private |final )*(?:struct|class|actor|enum) /#).last
      if let suite { needsOption = suite.output.1.contains(option) }
    }
    return found
  }

  private static func tested(_ numbers: (String) -> Set<String> = numbers(in:)) throws -> Set<String> {
    let folder = ProjectFile.path("Tests")
    var found: Set<String> = []
    for file in try FileManager.default.subpathsOfDirectory(atPath: folder) where file.hasSuffix(".swift") {
      // This file has examples of its own.
      if file.hasSuffix("/RequirementsTests.swift") { continue }
      found.formUnion(numbers(try String(contentsOfFile: folder + "/" + file, encoding: .utf8)))
    }
    return found
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

  @Test("Each number is in the name of a test that every run has")
  func everyRun() throws {
    #expect(try Self.tested().subtracting(Self.tested(Self.numbersOfEveryRun)).sorted() == [])
  }

  @Test("A test that runs only with an option, or whose suite does, is not one of every run")
  func onlyWithOption() {
    let source = """
      @Suite("a")
      struct First {
        @Test("A-001 a") func a() {}
        @Test("A-002 b", .enabled("scripts/test --lab runs it") { isWanted })
        func b() {}
        @Test("A-003 c", arguments: ["A-004 d"]) func c() {}
      }
      @Suite("e", .enabled(if: isWanted, "scripts/test --tls"))
      struct Second {
        @Test("A-005 e") func e() {}
      }
      """
    #expect(Self.numbers(in: source) == ["A-001", "A-002", "A-003", "A-004", "A-005"])
    #expect(Self.numbersOfEveryRun(in: source) == ["A-001", "A-003", "A-004"])
  }

  @Test("One number or several are found at the beginning of a name, and no others")
  func beginnings() {
    let source = #"@Test("A-081 a") "X-040, X-041 b" "B-023 and B-024 c" "see A-083" "A-S01 to A-S03 d" "D-05A e""#
    #expect(Self.numbers(in: source) == ["A-081", "X-040", "X-041", "B-023", "B-024", "A-S01", "A-S03", "D-05A"])
  }
}
