import Foundation
import Wire
import Testing
import TestSupport
import Transport

@testable import GateService

private let article = "Sources/Gate/GateService/GateService.docc/Refusals.md"

@Suite("The article about refusals")
struct RefusalArticleTests {
  struct Row {
    let code: String
    let status: Int?
    /// The meaning of the code, the action of the app, and the action of the operator.
    let advice: [String]
  }

  private static func rows() throws -> [Row] {
    try ProjectFile.text(article).split(separator: "\n")
      .filter { $0.hasPrefix("| `") }.map { line in
        let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
          .map { $0.trimmingCharacters(in: .whitespaces) }
        return Row(
          code: cells[0].replacing("`", with: ""), status: cells.count > 1 ? Int(cells[1]) : nil,
          advice: Array(cells.dropFirst(2)))
      }
  }

  @Test("The article has one row for each code, and no other row")
  func completeness() throws {
    let rows = try Self.rows()
    #expect(rows.map(\.code).sorted() == GateRefusalCode.allCases.map(\.rawValue).sorted())
    for row in rows {
      #expect(row.status == GateRefusalCode(rawValue: row.code)?.definition.status, "\(row.code)")
      #expect(row.advice.count == 3 && row.advice.allSatisfy { $0.hasSuffix(".") || $0.hasSuffix("`") }, "\(row.code)")
    }
  }

  /// The cells of each row of the table that begins with `head`.
  private static func table(_ head: String) throws -> [[String]] {
    try ProjectFile.text(article).split(separator: "\n").drop { $0 != head }.dropFirst(2)
      .prefix { $0.hasPrefix("|") }
      .map { $0.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) } }
  }

  @Test("The first table states the status of each code, and the next step of the app")
  func overview() throws {
    var found: [GateRefusalCode] = []
    for row in try Self.table("| status | codes | the app's next step | |") {
      try #require(row.count == 4)
      let statuses = row[0].components(separatedBy: ", ").compactMap(Int.init)
      for name in row[1].components(separatedBy: ", ") {
        let code = try #require(GateRefusalCode(rawValue: name.replacing("`", with: "")))
        found.append(code)
        #expect(statuses.contains(code.definition.status), "\(code)")
        #expect(row[2] == code.definition.advice.rawValue, "\(code)")
      }
    }
    #expect(found.map(\.rawValue).sorted() == GateRefusalCode.allCases.map(\.rawValue).sorted())
  }

  @Test("The last table lists each close code that the gate sends, and no other")
  func closeCodes() throws {
    let codes = try Self.table("| code | it means | the app |").flatMap { row in
      row[0].components(separatedBy: ", ").compactMap(UInt16.init)
    }
    #expect(codes.sorted() == CloseCode.sentByGate.map(\.rawValue).sorted())
  }
}
