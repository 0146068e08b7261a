import AppAttest
import AttestGate
import ByteCoding
import Foundation
import GateFixtures
import Wire
import Logging
import SimulatedDevice
import Testing
import Transport

@testable import GateService

@Suite("The list of the last refusals")
struct RefusalLogTests {
  /// Asks the operation of the admin server.
  private func list(_ query: String = "", of log: RefusalLog) async throws -> RefusalListing {
    let answer = await Self.answer(query, of: log)
    #expect(answer.status == 200)
    return try #require(AdminJSON.value(RefusalListing.self, in: answer.body))
  }

  private static func answer(_ query: String, of log: RefusalLog) async -> Response {
    let router = AdminRouter([RefusalResource(log)], access: .anyone)
    return await router.response(
      to: Request(
        id: "id", method: "GET", target: "/v1/refusals" + query, path: "/v1/refusals", headers: HeaderFields()))
  }

  private static func subject(_ number: Int, path: String? = "/") -> RefusalLog.Subject {
    RefusalLog.Subject(
      requestID: "r\(number)", address: .ipv4([10, UInt8(number >> 8 & 0xFF), UInt8(number & 0xFF), 1], port: 1),
      endpoint: nil, path: path)
  }

  @Test("Each refusal is listed with what its log line has, and without secrets", arguments: RefusalCase.all)
  func listed(_ refusal: RefusalCase) async throws {
    let (service, request) = try await refusal.attempt()
    _ = try await service.answer(to: request)
    let line = try #require(try service.log.lines.first)
    let answer = await Self.answer("", of: service.metrics.refusalLog)
    let listing = try #require(AdminJSON.value(RefusalListing.self, in: answer.body))
    #expect(listing.refusals.count == 1)
    let entry = try #require(listing.refusals.first)
    #expect(entry.requestID == Request.id && entry.code == refusal.code && entry.status == refusal.status)
    #expect(entry.step == refusal.step && entry.text == refusal.text)
    #expect(entry.address == "192.0.2.7" && entry.path == request.path)
    #expect(entry.detail == line["detail"] && entry.app == line["app"])
    #expect(entry.key.map { String($0.prefix(16)) } == line["key"])
    #expect(entry.advice == GateRefusalCode(rawValue: refusal.code)?.definition.advice.rawValue)
    let text = String(decoding: answer.body, as: UTF8.self)
    let claims = AssertionClaim.Name.allCases.flatMap { request.headers.values(named: $0.rawValue) }
    for secret in claims where secret.utf8.count >= 16 { #expect(!text.contains(secret)) }
  }

  @Test("Filters pick refusals by key, app, address, code, request id and any text")
  func filters() async throws {
    let bench = try GateBench()
    let service = try ServiceBench(bench)
    let device = try await bench.registeredDevice()
    let hash = KeyHash(of: device.keyID).text
    _ = try await service.answer(to: .upgrade(try device.fields(over: bench.nonce(), count: 0)))
    _ = try await service.answer(
      to: .plain("GET", "/attest/none"), from: Peer(address: .ipv4([192, 0, 2, 8], port: 1)))
    let log = service.metrics.refusalLog
    let all = try await list(of: log).refusals
    #expect(all.map(\.code) == ["not_found", "counter_replayed"])
    #expect(all.last?.key == hash && all.last?.app == GateBench.appID)
    for (query, count) in [
      ("?key=\(hash)", 1), ("?key=\(hash.prefix(6))", 1), ("?key=AAAAAA", 0), ("?app=\(GateBench.appID)", 1),
      ("?app=x", 0), ("?address=192.0.2.8", 1), ("?address=192.0.2", 0), ("?code=not_found", 1), ("?code=not", 0),
      ("?request=\(Request.id.prefix(8))", 2), ("?request=x", 0), ("?search=NONE", 1), ("?search=192.0.2", 2),
      ("?code=not_found&address=192.0.2.7", 0), ("?request=\(Request.id.prefix(8).uppercased())", 2),
      ("?address=::ffff:192.0.2.8", 1), ("?address=%5B::ffff:c000:208%5D", 1),
    ] { #expect(try await list(query, of: log).refusals.count == count, "\(query)") }
    for query in [
      "?key=x", "?since=-1", "?after=x", "?limit=0", "?search=" + String(repeating: "a", count: 129), "?user=x",
    ] { #expect(await Self.answer(query, of: log).status == 400, "\(query)") }
  }

  @Test("Monitor mode lists what it does not enforce, without a status")
  func monitor() async throws {
    let service = try ServiceBench(GateBench(enforcement: .monitor))
    _ = try await service.relay(for: .upgrade([]))
    let entry = try #require(try await list(of: service.metrics.refusalLog).refusals.first)
    #expect(entry.code == "no_credentials" && entry.status == nil)
  }

  @Test("An unreachable upstream, and one that refuses, are listed with the key of the client")
  func upstreams() async throws {
    let bench = try GateBench()
    let service = try ServiceBench(bench)
    let device = try await bench.registeredDevice()
    let first = try await service.order(for: .upgrade(try device.fields(over: bench.nonce(), count: 1)))
    _ = first.response(to: .unreachable("connection refused"))
    let second = try await service.order(for: .upgrade(try device.fields(over: bench.nonce(), count: 2)))
    _ = second.response(to: .refused(Response(status: 403)))
    let found = try await list("?key=\(KeyHash(of: device.keyID).text)", of: service.metrics.refusalLog).refusals
    #expect(found.map(\.code) == ["upstream_refused", "upstream_unavailable"])
    #expect(found.map(\.status) == [403, 502] && found.map(\.detail) == [nil, "connection refused"])
  }

  @Test("Pages list each refusal once, the newest first; later refusals come after the mark")
  func pages() async throws {
    let log = RefusalLog()
    for number in 0..<23 { log.note(RefusalReport(.notFound), status: 404, Self.subject(number)) }
    var (found, cursor): ([String], String?) = ([], nil)
    repeat {
      let page = try await list("?limit=5" + (cursor.map { "&after=\($0)" } ?? ""), of: log)
      found += page.refusals.map(\.requestID)
      cursor = page.next
    } while cursor != nil
    #expect(found == (0..<23).reversed().map { "r\($0)" })
    let mark = try await list("?limit=1", of: log).newest
    #expect(try await list("?since=\(mark)", of: log).refusals.isEmpty)
    for number in 23..<25 { log.note(RefusalReport(.notFound), status: 404, Self.subject(number)) }
    #expect(try await list("?since=\(mark)", of: log).refusals.map(\.requestID) == ["r24", "r23"])
  }

  @Test("A mark of the process before a restart stays valid")
  func restart() async throws {
    let clock = ManualClock()
    let log = RefusalLog(clock: clock.wallClock)
    for number in 0..<900 { log.note(RefusalReport(.notFound), status: 404, Self.subject(number)) }
    let mark = try await list("?limit=1", of: log).newest
    clock.advance(by: .milliseconds(1))
    let next = RefusalLog(clock: clock.wallClock)
    next.note(RefusalReport(.notFound), status: 404, Self.subject(1))
    #expect(try await list("?since=\(mark)", of: next).refusals.count == 1)
  }

  @Test("The list has 1000 records at most, and an address that floods it replaces its own ones")
  func flood() {
    let log = RefusalLog()
    for number in 0..<RefusalLog.capacity { log.note(RefusalReport(.notFound), status: 404, Self.subject(number)) }
    let flooder = RefusalLog.Subject(
      requestID: "flood", address: .ipv4([203, 0, 113, 1], port: 1), endpoint: nil, path: "/")
    for _ in 0..<5000 { log.note(RefusalReport(.notFound), status: 404, flooder) }
    let records = log.records
    #expect(records.count == RefusalLog.capacity)
    #expect(records.count { $0.requestID == "flood" } == RefusalLog.share)
    #expect(records.last?.requestID == "r\(RefusalLog.share)")
    // Without the flood, the oldest ones leave.
    for number in 0..<RefusalLog.capacity { log.note(RefusalReport(.notFound), status: 404, Self.subject(number)) }
    #expect(log.records.count { $0.requestID == "flood" } == 0)
  }

  @Test("An address of IPv6 is found in every notation; a search compares bytes")
  func notations() async throws {
    let log = RefusalLog()
    let address = SocketAddress.ipv6([0x20, 1, 0xD, 0xB8] + [UInt8](repeating: 0, count: 11) + [0xA], port: 1)
    log.note(
      RefusalReport(.notFound), status: 404,
      RefusalLog.Subject(
        requestID: "AbC", address: address, endpoint: nil, path: "/e" + String(repeating: "\u{301}", count: 9)))
    for (query, count) in [
      ("?address=2001:db8::a", 1), ("?address=2001:DB8::A", 1), ("?address=2001:0db8:0:0:0:0:0:000a", 1),
      ("?address=%5B2001:db8::a%5D", 1), ("?address=2001:db8::b", 0), ("?request=aBc", 1), ("?request=b", 0),
      ("?search=/E", 1), ("?search=ABC", 1), ("?search=%CC%81%CC%81", 1), ("?search=2001:DB8", 1),
    ] { #expect(try await list(query, of: log).refusals.count == count, "\(query)") }
  }

  @Test("A search finds exactly the texts that contain it")
  func folded() {
    var generator = SystemRandomNumberGenerator()
    func text(_ length: Int) -> String {
      String((0..<length).map { _ in "aAbB".randomElement(using: &generator) ?? "a" })
    }
    for _ in 0..<2000 {
      let (needle, hay) = (
        text(Int.random(in: 1...6, using: &generator)), text(Int.random(in: 0...20, using: &generator))
      )
      #expect(FoldedText(needle).occurs(in: hay) == hay.lowercased().contains(needle.lowercased()), "\(needle) \(hay)")
      #expect(FoldedText(needle).begins(hay) == hay.lowercased().hasPrefix(needle.lowercased()), "\(needle) \(hay)")
    }
  }

  @Test("The schema of the filters allows what the operation accepts")
  func schema() async throws {
    let log = RefusalLog()
    let text = String(repeating: "a", count: 128)
    #expect(await Self.answer("?search=" + text, of: log).status == 200)
    for parameter in try #require(RefusalResource(log).operations.first).parameters where parameter.name == "search" {
      #expect(JSONText.encoding(parameter.schema).contains("128"))
    }
  }

  @Test("The log keeps the records that its rule says, in their order, whatever the order of blocks")
  func ring() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<50 {
      var ring = RefusalRing(capacity: 12, share: 3)
      var model: [(number: UInt64, block: UInt8)] = []
      for number in 1...300 as ClosedRange<UInt64> {
        let block = UInt8.random(in: 0..<UInt8.random(in: 1...20, using: &generator), using: &generator)
        if model.count == 12 {
          let own = model.count { $0.block == block } >= 3 ? model.firstIndex { $0.block == block } : nil
          model.remove(at: own ?? 0)
        }
        model.append((number, block))
        let address = SocketAddress.ipv4([10, 0, block, 1], port: 1)
        let record = RefusalRecord(
          number: 0, at: Timestamp(seconds: 0), requestID: "", code: "", status: nil, step: "", detail: nil, text: "",
          advice: nil, key: nil, app: nil, address: address.host, endpoint: nil, path: nil)
        _ = ring.append(RefusalRing.Entry(record), numbered: number, of: AddressBlock(address))
        let found = ring.newestFirst
        #expect(found.map(\.number) == model.reversed().map(\.number))
        #expect(found.map(\.entry.record.address) == model.reversed().map { "10.0.\($0.block).1" })
      }
    }
  }

  @Test("A long path is cut, also within a character")
  func longPath() {
    let log = RefusalLog()
    for length in 14_000..<14_004 {
      log.note(
        RefusalReport(.notFound), status: 404,
        Self.subject(1, path: String(repeating: "a", count: length % 4) + String(repeating: "😀", count: length)))
    }
    for record in log.records { #expect(record.path.map { $0.utf8.count < 300 } == true) }
  }
}

@Suite("The other operations for the console")
struct ConsoleOperationTests {
  private func answer(_ resource: any AdminResource, _ target: String) async -> Response {
    await AdminRouter([resource], access: .anyone).response(
      to: Request(id: "id", method: "GET", target: target, path: target, headers: HeaderFields()))
  }

  @Test("The activity has admissions, refusals by code, and open sessions")
  func activity() async throws {
    let bench = try GateBench()
    let service = try ServiceBench(bench)
    let log = ActivityLog(of: service.metrics, sessions: service.sessions)
    let device = try await bench.registeredDevice()
    let order = try await service.order(for: .upgrade(try device.fields(over: bench.nonce(), count: 1)))
    for _ in 0..<2 { _ = try await service.answer(to: .plain("GET", "/attest/none")) }
    let body = await answer(ActivityResource(log), "/v1/activity").body
    let minutes = try #require(AdminJSON.value(ActivityListing.self, in: body)).minutes
    #expect(minutes.count == 1)
    #expect(minutes.first?.admitted == 1 && minutes.first?.sessions == 1)
    #expect(minutes.first?.refusals == ["not_found": 2])
    withExtendedLifetime(order) {}
  }

  @Test("The minutes of an hour have their own counts")
  func minutes() {
    var window = ActivityWindow()
    var counts = ActivityCounts()
    for second in stride(from: 10, through: 3600, by: 10) {
      counts.admitted += 1
      counts.sessions = second
      counts.refusals[.init(code: "a", status: "401"), default: 0] += 2
      window.note(counts, at: .seconds(second))
    }
    let minutes = window.minutes(counts, at: .seconds(3600))
    #expect(minutes.count == 60)
    #expect(minutes.allSatisfy { $0.admitted == 6 && $0.refusals == ["a": 12] })
    #expect(minutes.map(\.sessions) == (1...60).map { $0 * 60 })
  }

  @Test("An operator is named by the user of the process that asks")
  func operators() throws {
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    let file = folder.file("passwd")
    try "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000:,,,:/home/alice:/bin/sh\n"
      .write(toFile: file, atomically: true, encoding: .utf8)
    #expect(OperatorIdentity.name(of: 1000, in: file) == "alice")
    #expect(OperatorIdentity.name(of: 1, in: file) == nil)
    #expect(OperatorIdentity.name(of: 0, in: file + ".none") == nil)
  }
}
