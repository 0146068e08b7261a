import ByteCoding
import Foundation
import GateProcesses
import GateService
import TestSupport
import Testing
import Transport

@Suite("Stored decisions about keys", .serialized, .timeLimit(.minutes(5)))
struct DecisionTests {
  /// Returns the stored decisions about the key `hash` when there are `count`, which a gate stores within seconds.
  private func decisions(_ count: Int, about hash: String, _ options: [String]) async throws -> [DecisionDescription] {
    while true {
      let answer = try await sallyport(["keys", "decisions", hash, "--json"] + options)
      #expect(answer.status == 0, "\(answer.errors)")
      if answer.output.count >= count || answer.status != 0 {
        return try answer.output.map { try JSONDecoder().decode(DecisionDescription.self, from: Data($0.utf8)) }
      }
      try await Task.sleep(for: .milliseconds(100))
    }
  }

  @Test("Support finds on the key's page, and by the command, when and why a device was refused, also after a restart")
  func found() async throws {
    try await Places.withTemporaryFolder { folder in
      let echo = try await EchoProcess()
      defer { echo.process.kill() }
      var plan = GatePlan()
      plan.routes = [("/", echo.upstream)]
      plan.admin = #"{ listen: "unix:DIR/admin.sock" }"#
      let gate = try await GateProcess(plan, in: folder + "/gate")
      let bench = AdminBench(gate: gate, visitor: try Visitor(to: gate))
      let (phone, hash) = try await bench.registeredPhone()
      _ = try await bench.visitor.open(as: phone, counter: 5)
      for _ in 0..<2 {
        let old = try phone.credentials(over: await bench.visitor.challenge(), counter: 5)
        #expect(try await bench.visitor.refusal(of: old) == "counter_replayed")
        #expect(try await bench.visitor.refusal(of: old) == "counter_replayed")
      }
      let found = try await decisions(5, about: hash, bench.config)
      #expect(found.map(\.code) == Array(repeating: "counter_replayed", count: 4) + [nil])
      #expect(found.last?.outcome == .admitted && found.first?.outcome == .refused)
      #expect(found.allSatisfy { $0.verified && ["127.0.0.1", "::1"].contains($0.address) && $0.count == 1 })
      #expect(found.first?.detail == "5 after 5" && found.first?.step == "assertion_counter")
      // What waits is stored when the gate stops.
      let last = try phone.credentials(over: await bench.visitor.challenge(), counter: 4)
      #expect(try await bench.visitor.refusal(of: last) == "counter_replayed")
      gate.process.send(SIGTERM)
      #expect(try await gate.process.exit() == .code(0))
      #expect(try await decisions(6, about: hash, bench.config).first?.detail == "4 after 5")

      let next = try await GateProcess(plan, in: folder + "/gate")
      defer { next.process.kill() }
      let console = try await ConsoleProcess(AdminBench(gate: next, visitor: try Visitor(to: next)))
      defer { console.process.kill() }
      let cookie = try await console.signIn()
      let page = try await console.get("/keys/\(hash)", cookie: cookie).text
      for text in ["sallyport keys decisions", "assertion_counter", "4 after 5", "/keys/\(hash)/decisions"] {
        #expect(page.contains(text), "\(text)")
      }
      let list = try await console.get("/keys/\(hash)/decisions", cookie: cookie)
      #expect(list.status == 200 && list.text.contains("5 after 5") && list.text.contains("sallyport keys decisions"))
      let csv = try await console.get("/keys/\(hash)/decisions.csv", cookie: cookie).text.split(separator: "\r\n")
      #expect(csv.count == 7 && csv.first?.hasPrefix("time,decision,rule that failed") == true)
      let json = try await console.get("/keys/\(hash)/decisions.json", cookie: cookie).body
      #expect(AdminJSON.value(DecisionListing.self, in: json)?.decisions.count == 6)
      for path in ["/keys/AAAAAA/decisions", "/keys/x/decisions"] {
        #expect(try await console.get(path, cookie: cookie).status == 404, "\(path)")
      }
    }
  }

  @Test("A client that does not prove the key is counted, and one that invents a key leaves nothing")
  func unproved() async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      let socket = try await bench.visitor.open(as: phone, counter: 1)
      defer { withExtendedLifetime(socket) {} }
      let stranger = try Phone(of: bench.gate.authority)
      for _ in 0..<20 {
        let foreign = try stranger.credentials(over: await bench.visitor.challenge(), counter: 9)
        #expect(try await bench.visitor.refusal(of: foreign) == "key_refused")
        let fields = foreign.fields.map { field in
          field.name.lowercased() == "x-app-assert-keyid"
            ? HeaderFields.Field(name: field.name, value: phone.keyID) : field
        }
        #expect(try await bench.visitor.refusal(of: HeaderFields(fields)) == "key_refused")
      }
      var found: [DecisionDescription] = []
      while found.first?.count != 20, !Task.isCancelled { found = try await decisions(2, about: hash, bench.config) }
      #expect(found.count == 2 && found.last?.outcome == .admitted)
      #expect(found.first?.verified == false && found.first?.code == "key_refused" && found.first?.since != nil)
      let page = try await sallyport(["keys", "decisions", hash] + bench.config)
      #expect(page.output.allSatisfy { $0.split(separator: "\t").count == 9 } && page.output.count == 2)
      #expect(try await sallyport(["keys", "rm", hash, "--yes"] + bench.config).status == 0)
      #expect(try await sallyport(["keys", "decisions", hash] + bench.config).status == 66)
    }
  }

  @Test("With store.keep_decisions: off nothing is stored, and a reload that says so removes what was stored")
  func off() async throws {
    try await AdminBench.serving { bench in
      let (phone, hash) = try await bench.registeredPhone()
      _ = try await bench.visitor.open(as: phone, counter: 1)
      #expect(try await decisions(1, about: hash, bench.config).count == 1)
      let file = bench.config[1]
      let text = try String(contentsOfFile: file, encoding: .utf8)
      let off = text.replacing("store: { ", with: "store: { keep_decisions: off, ")
      #expect(off != text)
      try off.write(toFile: file, atomically: true, encoding: .utf8)
      let reload = try await sallyport(["reload"] + bench.config)
      #expect(reload.status == 0 && reload.errors == [], "\(reload.errors)")
      _ = try await bench.visitor.open(as: phone, counter: 2)
      while try await !decisions(0, about: hash, bench.config).isEmpty { try await Task.sleep(for: .milliseconds(100)) }
      #expect(try await decisions(0, about: hash, bench.config) == [])
    }
  }
}
