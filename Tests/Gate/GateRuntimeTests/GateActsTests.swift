import Locking
import Testing

@testable import ConsoleServing
@testable import GateRuntime

/// The sessions of one key at an admin server, which lists them in pages.
private final class KeySessions: Sendable {
  private let open: LockedValue<[Int]>

  init(_ count: Int) { open = LockedValue(Array(0..<count)) }

  var count: Int { open.withLock(\.count) }

  /// The answer to a request for a list, or to close one.
  func reply(_ method: String, _ target: String) -> ConsoleLink.Reply {
    let text = open.withLock { open in
      guard method == "GET" else {
        let id = target.split(separator: "/").last.map(String.init) ?? ""
        open.removeAll { Self.id($0) == id }
        return #"{"id":"\#(id)","closed":true}"#
      }
      let fields = target.split { "?&".contains($0) }
      let after = fields.first { $0.hasPrefix("after=") }.flatMap { Int($0.dropFirst("after=".count)) } ?? -1
      let limit = fields.first { $0.hasPrefix("limit=") }.flatMap { Int($0.dropFirst("limit=".count)) } ?? 100
      let rest = open.filter { $0 > after }
      let page = rest.prefix(limit)
      let rows = page.map { number in
        #"{"id":"\#(Self.id(number))","route":"/","method":"none","opened_at":"2027-01-15T08:00:00Z","#
          + #""age_seconds":1,"address":"192.0.2.1:1"}"#
      }
      let next = rest.count > page.count ? page.last.map { #","next":"\#($0)""# } ?? "" : ""
      return #"{"sessions":[\#(rows.joined(separator: ","))]\#(next)}"#
    }
    return ConsoleLink.Reply(status: 200, body: Array(text.utf8))
  }

  private static func id(_ number: Int) -> String {
    String(repeating: "0", count: 32 - "\(number)".count) + "\(number)"
  }
}

@Suite("Acts of the gate's console")
struct GateActsTests {
  @Test("All sessions of a key are closed, however many pages they have", arguments: [0, 1, 1000, 2300])
  func closeAll(_ count: Int) async throws {
    let sessions = KeySessions(count)
    let link = ConsoleLink(program: "sallyport", service: "gate", options: { _ in [] }) {
      method, target, _ throws(ConsoleFault) in sessions.reply(method, target)
    }
    let form = try #require(ConsoleForm("key=\(String(repeating: "A", count: 43))".utf8))
    try await GateActs.perform(GateActs.closeSessions, form, link)
    #expect(sessions.count == 0)
  }
}
