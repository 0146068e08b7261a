import AttestGate
import Foundation
import Testing
import TestSupport
import Transport

@testable import GateService

/// All codes that a client can receive.
private let codes = Set(Denial.Code.allCases.map(\.rawValue) + RequestRefusal.Code.allCases.map(\.rawValue))

@Suite("The code table of the refusals article")
struct TroubleshootingTests {
  struct Row {
    let code: String
    let status: Int?
    /// The meaning of the code, the action of the app, and the action of the operator.
    let advice: [String]
  }

  private static func rows() throws -> [Row] {
    try ProjectFile.text("Sources/Gate/GateService/GateService.docc/Refusals.md").split(separator: "\n")
      .filter { $0.hasPrefix("| `") }.map { line in
        let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
          .map { $0.trimmingCharacters(in: .whitespaces) }
        return Row(
          code: cells[0].replacing("`", with: ""), status: cells.count > 1 ? Int(cells[1]) : nil,
          advice: Array(cells.dropFirst(2)))
      }
  }

  @Test("The table has one row for each code, and no other row")
  func completeness() throws {
    let rows = try Self.rows()
    #expect(rows.map(\.code).sorted() == codes.sorted())
    for row in rows {
      #expect(row.advice.count == 3 && row.advice.allSatisfy { $0.hasSuffix(".") || $0.hasSuffix("`") }, "\(row.code)")
    }
  }

  @Test("The table has the status of each code", arguments: RefusalCase.all)
  func statuses(_ refusal: RefusalCase) throws {
    #expect(try Self.rows().first { $0.code == refusal.code }?.status == refusal.status)
  }
}

@Suite("The status table of the refusals article")
struct ReadmeTests {
  /// The codes in the table, each with the statuses of its row.
  private static func rows() throws -> [String: [Int]] {
    let lines = try ProjectFile.text("Sources/Gate/GateService/GateService.docc/Refusals.md").split(separator: "\n")
      .drop { $0 != "| status | codes | |" }.dropFirst(2)
    var rows: [String: [Int]] = [:]
    for line in lines.prefix(while: { $0.hasPrefix("|") }) {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 3 else { continue }
      let statuses = cells[0].components(separatedBy: ", ").compactMap(Int.init)
      for code in cells[1].components(separatedBy: ", ") { rows[code.replacing("`", with: "")] = statuses }
    }
    return rows
  }

  @Test("The table has each code, and no other code")
  func everyCode() throws {
    #expect(Set(try Self.rows().keys) == codes)
  }

  @Test(
    "The table has the other refusals with their statuses",
    arguments: [
      RequestRefusal.malformedRegistration(.notJSON), .foreignOrigin, .notFound, .methodNotAllowed(allowed: "GET"),
      .upgradeRequired, .malformedRequest(.malformedHead(rule: "")), .malformedRequest(.headTooLarge(rule: "")),
      .malformedRequest(.bodyTooLarge(limit: 1)), .malformedRequest(.malformedBody(rule: "")),
      .malformedRequest(.malformedUpgrade(rule: "")), .malformedRequest(.unsupportedWebSocketVersion),
      .malformedRequest(.tooSlow), .upstreamUnavailable(.timedOut),
      .rateLimited(.challengesPerAddress, wait: .seconds(1)),
      .tooManySessions(limit: 1),
    ])
  func refusals(_ refusal: RequestRefusal) throws {
    let answer = refusal.answer
    #expect(try Self.rows()[answer.code]?.contains(answer.status) == true)
  }
}
