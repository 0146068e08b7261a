import ByteCoding
import ConsoleServing
import Locking

/// Pages with texts that an attacker chose, and acts that are counted.
final class ExamplePages: ConsolePages {
  static let attack = #"<script>alert(1)</script>"' onload=x "#
  static let add = ConsoleAct("add", .support, done: "Added.")
  static let stop = ConsoleAct("stop", .admin, done: "Stopped.")

  let done = LockedValue<[String]>([])
  let fault = LockedValue<ConsoleFault?>(nil)

  let name = "example"
  let sections = [ConsoleSection("/", "Start"), ConsoleSection("/list", "List")]
  let acts = [add, stop]
  let exportRole: ConsoleRole

  init(exportRole: ConsoleRole = .view) { self.exportRole = exportRole }

  func page(
    at path: String, _ query: ConsoleForm, for viewer: ConsoleViewer
  ) async throws(ConsoleFault) -> ConsolePage? {
    if let fault = fault.withLock(\.self) { throw fault }
    switch path {
    case "/": return ConsolePage("Start", content: "<p>start</p>")
    case "/list":
      let search = query["search"] ?? ""
      let table = ConsoleTable(
        Self.attack, ["name", Self.attack],
        [[.init(search), .init(Self.attack)], [.init("=1+1"), .init("-1,\"x\"")]],
        whenEmpty: "none")
      return ConsolePage(
        "List", command: Shown.command(["list", "--search", search]),
        head: viewer.form(Self.add, "Add", values: [("what", search)], back: "/list", question: Self.attack),
        content: table.markup, isLive: true, acts: [Self.add], table: table, json: "[]")
    default: return nil
    }
  }

  func perform(_ act: ConsoleAct, _ form: ConsoleForm, for viewer: ConsoleViewer) async throws(ConsoleFault) {
    if let fault = fault.withLock(\.self) { throw fault }
    let person = viewer.person.map { " by \($0)" } ?? ""
    done.withLock { $0.append("\(act.name) \(form["what"] ?? "")\(person)") }
  }
}

/// A console at 127.0.0.1:4000 and its browser.
final class Bench: Sendable {
  let pages: ExamplePages
  let access: ConsoleAccess
  let site: ConsoleSite
  private let instant = LockedValue(Timestamp(seconds: 1_800_000_000))

  init(
    role: ConsoleRole = .support, users: Set<UInt32> = [], port: UInt16 = 4000, exportRole: ConsoleRole = .view
  ) {
    pages = ExamplePages(exportRole: exportRole)
    access = ConsoleAccess(clock: WallClock { [instant] in instant.withLock(\.self) })
    site = ConsoleSite(host: "127.0.0.1", port: port, pages: pages, access: access, role: role, users: users)
  }

  func advance(by duration: Duration) { instant.withLock { $0 = $0.advanced(by: duration) } }

  /// Sends a request. Fields replace the usual ones of the same name; an empty value removes the field.
  func send(
    _ method: String, _ target: String, _ changes: [String: String] = [:], cookie: String? = nil, body: String = ""
  ) async -> ConsoleResponse {
    var fields = ["Host": "127.0.0.1:4000"]
    if method == "POST" {
      fields["Origin"] = "http://127.0.0.1:4000"
      fields["Content-Type"] = "application/x-www-form-urlencoded"
    }
    fields["Cookie"] = cookie
    for (name, value) in changes { fields[name] = value.isEmpty ? nil : value }
    let parts = target.split(separator: "?", maxSplits: 1)
    return await site.answer(
      to: ConsoleRequest(
        method: method, path: String(parts.first ?? "/"), query: parts.count > 1 ? String(parts[1]) : nil,
        fields: fields.map { ($0.key, $0.value) }, body: Array(body.utf8)))
  }

  /// Signs in and returns the field `Cookie` of the browser.
  func signIn() async -> String? {
    let answer = await send("POST", "/session", ["Content-Type": "text/plain"], body: access.token)
    return answer.first("Set-Cookie").map { String($0.prefix { $0 != ";" }) }
  }

  /// Returns the token of the forms on the page for `cookie`.
  func formToken(_ cookie: String) async -> String? {
    let page = await send("GET", "/list", cookie: cookie).text
    return page.firstMatch(of: /name="token" value="([^"]+)"/).map { String($0.output.1) }
  }
}

extension ConsoleResponse {
  var text: String { String(decoding: body, as: UTF8.self) }
  func first(_ name: String) -> String? { fields.first { $0.name == name }?.value }
}
