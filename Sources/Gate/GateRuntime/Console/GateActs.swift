internal import ConsoleServing
internal import GateService

/// What a console does at a gate. Each act is one operation of the admin server, which logs it.
enum GateActs {
  static let revoke = ConsoleAct("revoke", .support, done: "The key is revoked, and its sessions are closed.")
  static let restore = ConsoleAct("restore", .support, done: "The key is restored.")
  static let closeSession = ConsoleAct("close-session", .support, done: "The session is closed.")
  static let closeSessions = ConsoleAct("close-sessions", .support, done: "The sessions of the key are closed.")
  static let drain = ConsoleAct("drain", .admin, done: "The server gets no new sessions.")
  static let resume = ConsoleAct("resume", .admin, done: "The server gets sessions again.")

  static let all = [revoke, restore, closeSession, closeSessions, drain, resume]

  /// The sessions that one request lists, at most what the admin server allows.
  private static let sessionsOfPage = 1000
  /// The pages that one act closes at most: a client can open sessions faster than they are closed.
  private static let mostPages = 100

  static func perform(_ act: ConsoleAct, _ form: ConsoleForm, _ gate: ConsoleLink) async throws(ConsoleFault) {
    switch act.name {
    case revoke.name, restore.name:
      _ = try await gate.send("POST", "/v1/keys/\(try key(form).text)/\(act.name)", KeyDescription.self)
    case closeSession.name: try await close(try session(form), gate)
    case closeSessions.name: try await closeAll(of: try key(form), gate)
    case drain.name, resume.name:
      guard let upstream = form["upstream"] else { throw ConsoleFault(400, "The form names no server.") }
      let query = ConsoleForm.query([("upstream", upstream), ("route", form["route"])])
      _ = try await gate.send("POST", "/v1/upstreams/\(act.name)\(query)", UpstreamServerState.self)
    default: throw ConsoleFault(404, "There is no such act.")
    }
  }

  private static func key(_ form: ConsoleForm) throws(ConsoleFault) -> KeyName {
    // Only a whole hash: the beginning of one could mean another key by now.
    guard let name = form["key"].flatMap({ KeyName($0) }), name.text.utf8.count == KeyName.length else {
      throw ConsoleFault(400, "The form names no key.")
    }
    return name
  }

  private static func session(_ form: ConsoleForm) throws(ConsoleFault) -> String {
    let digits = Array("0123456789abcdef".utf8)
    guard let id = form["session"], id.utf8.count == 32, id.utf8.allSatisfy({ digits.contains($0) }) else {
      throw ConsoleFault(400, "The form names no session.")
    }
    return id
  }

  private static func close(_ id: String, _ gate: ConsoleLink) async throws(ConsoleFault) {
    _ = try await gate.send("DELETE", "/v1/sessions/\(id)", SessionClosing.self)
  }

  private static func closeAll(of key: KeyName, _ gate: ConsoleLink) async throws(ConsoleFault) {
    var cursor: String?
    for _ in 0..<mostPages {
      let query = ConsoleForm.query([("key", key.text), ("limit", "\(sessionsOfPage)"), ("after", cursor)])
      let page = try await gate.get("/v1/sessions" + query, SessionListing.self).value
      for session in page.sessions {
        do throws(ConsoleFault) { try await close(session.id, gate) } catch {
          // It has ended by itself.
          guard error.status == 404 else { throw error }
        }
      }
      guard let next = page.next else { return }
      cursor = next
    }
  }
}
