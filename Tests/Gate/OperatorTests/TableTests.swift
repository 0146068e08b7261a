import AttestGate
import ByteCoding
import Foundation
import GateService
import TestSupport
import Testing

@Suite("Lists on a terminal", .timeLimit(.minutes(5)))
struct TableTests {
  /// Runs `sallyport` with a terminal of `columns`, by script(1), and returns its lines.
  private static func typed(_ arguments: [String], columns: Int) async throws -> [String] {
    let command = ([try Places.product("sallyport")] + arguments).joined(separator: " ")
    let (exit, output, _) = try await ChildProcess.run(
      Places.tool("script"), ["-qec", command, "/dev/null"], environment: ["COLUMNS": "\(columns)"])
    #expect(exit == .code(0), "\(output)")
    return output.map { $0.trimmingCharacters(in: ["\r"]) }
  }

  private static func entry(_ number: Int, before: Int64?) throws -> KeyEntry {
    let entry = try Fixture.entry(number, app: "AAABBBCCC1.com.example.an-app-with-a-long-name.of-a-customer")
    let record = entry.record
    let now = Timestamp.now()
    return KeyEntry(
      record: KeyRecord(
        key: record.key, request: record.request, registeredAt: now.advanced(by: .seconds(-40 * 86_400)),
        counter: record.counter, lastUsedAt: before.map { now.advanced(by: .seconds(-$0)) }, revokedAt: nil),
      usedCounters: entry.usedCounters, receipt: entry.receipt)
  }

  @Test("A table fits the terminal: short hashes, relative times, an app without its middle", arguments: [60, 80, 120])
  func width(_ columns: Int) async throws {
    try await StoreBench.with([Self.entry(3, before: 200), Self.entry(4, before: nil)]) { bench in
      let lines = try await Self.typed(["keys", "list", "--store", bench.url], columns: columns)
      #expect(lines.count == 3)
      #expect(lines.allSatisfy { $0.count <= columns }, "\(lines)")
      #expect(lines[0].hasPrefix("KEY       APP "))
      let hash = try Fixture.hash(3)
      let row = try #require(lines.first { $0.hasPrefix(hash.prefix(8) + "  AAABBBC") }, "\(lines)")
      #expect(row.contains("3 min ago"))
      #expect(row.contains("…"))
      // The least important columns go first.
      for heading in ["COUNTER", "ENVIRONMENT"] { #expect(lines[0].contains(heading) == (columns > 60), "\(lines)") }
      for heading in ["STATE", "LAST USED", "REGISTERED"] { #expect(lines[0].contains(heading), "\(lines)") }
      // What the table shows is accepted.
      #expect(
        try await sallyport(["keys", "show", String(row.prefix(8)), "--json", "--store", bench.url])
          .json(KeyDescription.self).key == hash)
    }
  }

  @Test("A list without keys says so on a terminal, and is empty elsewhere")
  func empty() async throws {
    try await StoreBench.with([]) { bench async throws in
      let list = ["keys", "list", "--store", bench.url]
      #expect(try await Self.typed(list, columns: 80) == ["no keys yet"])
      #expect(try await Self.typed(list + ["--state", "revoked"], columns: 80) == ["no such keys"])
      #expect(try await sallyport(list).output == [])
      #expect(try await Self.typed(list + ["--json"], columns: 80) == [])
    }
  }
}
