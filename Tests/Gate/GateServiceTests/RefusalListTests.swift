import AttestGate
import Foundation
import Testing
import TestSupport
import Transport

@testable import GateService

/// Every code that a client can be told.
private let codes = Set(Denial.Code.allCases.map(\.rawValue) + RequestRefusal.Code.allCases.map(\.rawValue))

@Suite("The article about refusals")
struct TroubleshootingTests {
  struct Row {
    let code: String
    let status: Int?
    /// What it means, what the app does, what the operator does.
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

  @Test("has one row for each code, and no row for anything else")
  func completeness() throws {
    let rows = try Self.rows()
    #expect(rows.map(\.code).sorted() == codes.sorted())
    for row in rows {
      #expect(row.advice.count == 3 && row.advice.allSatisfy { $0.hasSuffix(".") || $0.hasSuffix("`") }, "\(row.code)")
    }
  }

  @Test("has the status of each", arguments: RefusalCase.all)
  func statuses(_ refusal: RefusalCase) throws {
    #expect(try Self.rows().first { $0.code == refusal.code }?.status == refusal.status)
  }
}

@Suite("The article's first table lists every refusal")
struct ReadmeTests {
  /// The codes in the article's first table, each with the statuses of its row.
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

  @Test("has each code, and nothing else")
  func everyCode() throws {
    #expect(Set(try Self.rows().keys) == codes)
  }

  @Test(
    "has each other refusal with its status",
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
