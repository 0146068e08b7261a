import AttestGate
import Foundation
import Testing
import Transport

@testable import GateService

@Suite("The README lists every refusal")
struct ReadmeTests {
  /// The codes in the README's table, each with the statuses of its row.
  private static func rows() throws -> [String: [Int]] {
    var root = URL(fileURLWithPath: #filePath)
    for _ in 1...3 { root.deleteLastPathComponent() }
    let readme = try String(contentsOf: root.appendingPathComponent("README.md"), encoding: .utf8)
    let lines = readme.split(separator: "\n").drop { $0 != "| status | codes | |" }.dropFirst(2)
    var rows: [String: [Int]] = [:]
    for line in lines.prefix(while: { $0.hasPrefix("|") }) {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 3 else { continue }
      let statuses = cells[0].components(separatedBy: ", ").compactMap(Int.init)
      for code in cells[1].components(separatedBy: ", ") { rows[code.replacing("`", with: "")] = statuses }
    }
    return rows
  }

  @Test("Each code of a denial stands in it", arguments: Denial.Code.allCases)
  func denials(_ code: Denial.Code) throws {
    #expect(try Self.rows()[code.rawValue] != nil)
  }

  @Test(
    "Each other refusal stands in it with its status",
    arguments: [
      Refusal.malformedRegistration(.notJSON), .foreignOrigin, .notFound, .methodNotAllowed(allowed: "GET"),
      .upgradeRequired, .malformedRequest(.malformedHead(rule: "")), .malformedRequest(.headTooLarge(rule: "")),
      .malformedRequest(.bodyTooLarge(limit: 1)), .malformedRequest(.malformedBody(rule: "")),
      .malformedRequest(.malformedUpgrade(rule: "")), .malformedRequest(.unsupportedWebSocketVersion),
      .malformedRequest(.tooSlow), .upstreamUnavailable(.timedOut),
    ])
  func refusals(_ refusal: Refusal) throws {
    let answer = refusal.answer
    #expect(try Self.rows()[answer.code]?.contains(answer.status) == true)
  }
}
