internal import ByteCoding
internal import ConsoleServing
internal import MFAService

/// What belongs to an account, as tables.
struct AccountTables {
  let description: AccountDescription
  let page: AccountPage
  let backend: ConsoleLink

  private var now: Timestamp { page.now }
  private var username: String { description.account.username }

  var all: [HTML] {
    let optional: [(String, ConsoleTable)] = [
      ("Failed attempts", lockouts), ("Security keys", keys), ("Tokens and added apps", tokens),
      ("Trusted devices", trust),
    ]
    let tables = [("Devices", devices), ("Sessions", sessions)] + optional.filter { !$0.1.rows.isEmpty }
    return tables.map { title, table in "<h2>\(title)</h2>\n\(table.markup)\n" }
  }

  private func time(_ instant: String?, _ missing: String? = nil) -> ConsoleTable.Cell {
    BackendParts.time(instant, at: now, missing: missing)
  }

  /// Adds a column with a form to each row, if the role may use it.
  private func table<Item>(
    _ caption: String, _ columns: [String], _ items: [Item], _ act: ConsoleAct? = nil, whenEmpty: String,
    _ row: (Item) -> [ConsoleTable.Cell], form: (Item) -> HTML = { _ in .nothing }
  ) -> ConsoleTable {
    let hasForms = act.map { page.viewer.role >= $0.role } ?? false
    return ConsoleTable(
      caption, columns + (hasForms ? [""] : []), items.map { row($0) + (hasForms ? [.init("", form($0))] : []) },
      whenEmpty: whenEmpty)
  }

  private var devices: ConsoleTable {
    table(
      "Devices, the oldest first",
      ["model", "device", "proof", "unlocked by", "key at the gate", "push", "last use", "enrolled"],
      description.devices, BackendActs.removeDevice, whenEmpty: "No devices."
    ) { device in
      [
        .init(device.model), ConsoleParts.code(device.id, length: 16), .init(device.method), .init(device.unlock),
        Self.gateKey(of: device), .init(device.getsPush ? "yes" : "no"),
        time(device.lastUsedAt, "never"), time(device.enrolledAt),
      ]
    } form: { device in
      let line = backend.line(
        ["admin", "remove-device"] + ConsoleParts.option("--device", device.id), account: page.id.text, named: username)
      return page.form(
        BackendActs.removeDevice, "Remove", [("device", device.id)],
        "The device \(device.id) leaves the account, with its sessions and trust. The same: \(line)", isDangerous: true)
    }
  }

  private static func gateKey(of device: AccountDescription.Device) -> ConsoleTable.Cell {
    guard let key = device.gateKey else { return .init(device.isAttested ? "attested" : "debug build") }
    let shown = Shown.text(key)
    return .init(hash: key, #"<code class="nowrap" title="\#(shown)">\#(String(shown.prefix(12)))</code>"#)
  }

  private var sessions: ConsoleTable {
    table(
      "Open sessions, the newest first", ["session", "device", "scope", "methods", "begun", "last proof", "ends"],
      description.sessions, whenEmpty: "No open sessions."
    ) { session in
      [
        ConsoleParts.code(session.id, length: 8), ConsoleParts.code(session.device, length: 16), .init(session.scope),
        .init(session.methods.joined(separator: " ")), time(session.createdAt), time(session.authenticatedAt),
        time(session.expiresAt),
      ]
    }
  }

  private var lockouts: ConsoleTable {
    table(
      "Failed attempts since the last success", ["attempts at", "failed", "state", "ends", "last attempt"],
      description.lockouts, whenEmpty: "No failed attempts."
    ) { lockout in
      let state = lockout.isLocked ? ("bad", "locked") : ("good", "open")
      return [
        .init(Self.purpose(lockout.purpose)), .init(lockout.failures),
        .init(state.1, #"<span><span class="pill \#(state.0)">\#(state.1)</span></span>"#),
        lockout.isLocked && lockout.until == nil ? .init("only by an operator") : time(lockout.until),
        time(lockout.lastUsedAt),
      ]
    }
  }

  private static func purpose(_ word: String) -> String {
    switch word {
    case "mfa": "second factor"
    case "sms": "code by SMS"
    case "email": "code by e-mail"
    case "link": "link code"
    case "recovery": "code of a recovery"
    case "recovery-start": "backup code for a recovery"
    case "recovery-stop": "code that stops a recovery"
    default: word
    }
  }

  private var keys: ConsoleTable {
    table(
      "Security keys", ["name", "key", "copies", "last use", "registered"], description.securityKeys,
      whenEmpty: "No security keys."
    ) { key in
      [
        .init(key.name), ConsoleParts.code(key.id, length: 8), .init(key.isBackedUp ? "on several devices" : "one"),
        time(key.lastUsedAt, "never"), time(key.createdAt),
      ]
    }
  }

  private var tokens: ConsoleTable {
    table(
      "Tokens that operators have assigned, and apps that the user has added",
      ["serial", "name or maker", "kind", "last use"], description.tokens, BackendActs.unassignToken,
      whenEmpty: "No tokens."
    ) { token in
      [
        ConsoleParts.code(token.serial), .init(token.name ?? token.maker),
        .init(token.name == nil ? token.kind : "app"),
        time(token.lastUsedAt, "never"),
      ]
    } form: { token in
      // An app that the user has added can be removed only, which is no act of the console.
      guard token.name == nil else { return .nothing }
      return page.form(
        BackendActs.unassignToken, "Take back", [("serial", token.serial)],
        "The token \(token.serial) belongs to no account then, and keeps its counter. The same: "
          + backend.line(["admin", "tokens", "unassign"], operand: token.serial))
    }
  }

  private var trust: ConsoleTable {
    table(
      "Devices that skip the second factor", ["name", "address", "trusted", "last use", "ends"],
      description.trustedDevices, whenEmpty: "No trusted devices."
    ) { device in
      [
        .init(device.name), .init(device.address), time(device.createdAt), time(device.lastUsedAt),
        time(device.expiresAt),
      ]
    }
  }
}
