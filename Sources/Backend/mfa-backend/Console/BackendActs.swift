internal import ConsoleServing
internal import MFAService

/// What a console does at a backend. Each act is one operation of the admin socket, which writes it to the history.
///
/// A code that brings a device into an account (`admin reset`) and backup codes are no acts: they would be secrets on a
/// page.
enum BackendActs {
  static let lock = ConsoleAct("lock", .support, done: "The account is locked, and its sessions are ended.")
  static let unlock = ConsoleAct(
    "unlock", .support, done: "The account is unlocked, and its failed attempts are forgotten.")
  static let endSessions = ConsoleAct("end-sessions", .support, done: "The sessions of the account are ended.")
  static let removeDevice = ConsoleAct("remove-device", .support, done: "The device is removed.")
  static let unassignToken = ConsoleAct("unassign-token", .support, done: "The token belongs to no account now.")
  static let cancelRecovery = ConsoleAct("cancel-recovery", .support, done: "The recovery is stopped.")
  static let grant = ConsoleAct("grant", .admin, done: "The account may administer other accounts now.")
  static let revoke = ConsoleAct("revoke", .admin, done: "The account may no longer administer other accounts.")

  static let all = [lock, unlock, endSessions, removeDevice, unassignToken, cancelRecovery, grant, revoke]

  static func perform(_ act: ConsoleAct, _ form: ConsoleForm, _ backend: ConsoleLink) async throws(ConsoleFault) {
    guard let id = form["account"].flatMap({ AccountID($0) }) else {
      throw ConsoleFault(400, "The form names no account.")
    }
    var fields: [(name: String, value: String?)] = [("id", id.text)]
    switch act.name {
    case removeDevice.name: fields.append(("device", try value("device", form)))
    // The lock that the page showed: an old page must not lift a newer one.
    case unlock.name: fields.append(("seen", form["seen"]))
    case unassignToken.name: fields.append(("serial", try value("serial", form)))
    case lock.name, endSessions.name, cancelRecovery.name, grant.name, revoke.name: break
    default: throw ConsoleFault(404, "There is no such act.")
    }
    let change = try await backend.send(
      "POST", "/v1/account/\(act.name)" + ConsoleForm.query(fields), AccountChange.self)
    // It forgets failed attempts, too.
    guard change.value.changed || act.name == unlock.name else {
      throw ConsoleFault(409, "Nothing has changed: it was so already.")
    }
  }

  private static func value(_ name: String, _ form: ConsoleForm) throws(ConsoleFault) -> String {
    guard let value = form[name] else { throw ConsoleFault(400, "The form names no \(name).") }
    return value
  }
}
