internal import ByteCoding
internal import ConsoleServing
internal import GateService

/// The servers of the routes.
enum UpstreamsPage {
  static func page(_ gate: ConsoleLink, _ viewer: ConsoleViewer) async throws(ConsoleFault) -> ConsolePage {
    let answer = try await gate.get("/v1/upstreams", UpstreamListing.self)
    let changes = viewer.role >= GateActs.drain.role
    let table = ConsoleTable(
      "Servers of the routes", ["route", "server", "condition", "sessions", "failures"] + (changes ? [""] : []),
      answer.value.upstreams.map { server in
        row(server) + (changes ? [.init("", act(server, gate, viewer))] : [])
      },
      whenEmpty: "No routes.")
    return ConsolePage(
      "Upstreams", command: gate.line(["upstreams", "list"]), content: table.markup, isLive: true,
      acts: [GateActs.drain, GateActs.resume], table: table, json: answer.json)
  }

  private static func row(_ server: UpstreamServerState) -> [ConsoleTable.Cell] {
    let tone =
      switch server.condition {
      case .available: "good"
      default: "warn"
      }
    return [
      .init(server.route), ConsoleParts.code(server.upstream),
      .init(
        server.condition.rawValue, #"<span><span class="pill \#(tone)">\#(server.condition.rawValue)</span></span>"#),
      server.sessions.map { .init($0) } ?? .init(nil as String?), .init(server.failures),
    ]
  }

  private static func act(_ server: UpstreamServerState, _ gate: ConsoleLink, _ viewer: ConsoleViewer) -> HTML {
    let values = [(name: "upstream", value: server.upstream), (name: "route", value: server.route ?? "")]
    func line(_ word: String) -> String {
      gate.line(["upstreams", word] + ConsoleParts.option("--route", server.route), operand: server.upstream)
    }
    guard server.condition == .drained else {
      return viewer.form(
        GateActs.drain, "Drain", values: values, back: "/upstreams",
        question: "The server gets no new sessions; open ones stay. The same: \(line("drain"))")
    }
    return viewer.form(
      GateActs.resume, "Resume", values: values, back: "/upstreams",
      question: "The server gets sessions again. The same: \(line("resume"))")
  }
}

/// The certificates of the gate.
enum CertificatesPage {
  static func page(_ gate: ConsoleLink, _ now: Timestamp) async throws(ConsoleFault) -> ConsolePage {
    let status = try await gate.get("/v1/status", GateStatus.self).value
    let table = ConsoleTable(
      "Certificates", ["name", "subject", "expires", "state", "renewal"],
      status.certificates.map { row($0, at: now) }, whenEmpty: "No certificates.")
    let fault: HTML =
      if let fault = status.certificateFault {
        #"<div class="notice warn"><strong>Changed certificates cannot be used</strong><p>\#(Shown.text(fault))</p></div>"#
      } else {
        .nothing
      }
    return ConsolePage(
      "Certificates", command: gate.line(["status"]), content: "\(fault)\(table.markup)", isLive: true, table: table,
      json: JSONText.encoding(status.certificates))
  }

  private static func row(_ certificate: GateStatus.CertificateState, at now: Timestamp) -> [ConsoleTable.Cell] {
    let (tone, state) =
      certificate.secondsLeft <= 0
      ? ("bad", "expired")
      : certificate.endsSoon
        ? ("warn", "renew now") : certificate.isFileServed ? ("good", "in use") : ("warn", "its file differs")
    return [
      .init(certificate.name), .init(certificate.subject),
      .init(certificate.endsAt, Shown.time(certificate.endsAt, at: now)),
      .init(state, #"<span><span class="pill \#(tone)">\#(state)</span></span>"#),
      .init(certificate.renewal?.text ?? "from files"),
    ]
  }
}

/// The settings in use.
enum ConfigurationPage {
  static func page(_ gate: ConsoleLink, _ now: Timestamp) async throws(ConsoleFault) -> ConsolePage {
    let answer = try await gate.get("/v1/configuration", ConfigurationListing.self)
    let status = try await gate.get("/v1/status", GateStatus.self).value.configuration
    let table = ConsoleTable(
      "Settings", ["setting", "value", "source"],
      answer.value.settings.map { setting in
        [
          ConsoleParts.code(setting.key), setting.value.map { ConsoleParts.code($0) } ?? .init("not set"),
          .init(setting.source),
        ]
      },
      whenEmpty: "No settings.")
    let fault: HTML =
      if let fault = status.fault {
        #"<div class="notice warn"><strong>The configuration was not reloaded</strong><p>\#(Shown.text(fault))</p></div>"#
      } else {
        .nothing
      }
    return ConsolePage(
      "Configuration", command: gate.line(["check", "--effective"]),
      content: """
        <p class="quiet">Loaded \(status.loadedAt)\(status.file.map { " from \(Shown.text($0))" } ?? ""). Secrets are \
        masked.</p>
        \(fault)
        <h2>Changed by reloads</h2>
        \(changes(answer.value.changes ?? [], at: now).markup)
        <h2>In use</h2>
        \(table.markup)
        """,
      table: table, json: answer.json)
  }

  private static func changes(_ changes: [SettingChange], at now: Timestamp) -> ConsoleTable {
    ConsoleTable(
      "Settings that reloads have changed, the newest first", ["time", "setting", "before", "since then"],
      changes.map { change in
        [
          .init(change.at, Shown.time(change.at, at: now)), ConsoleParts.code(change.key),
          change.before.map { ConsoleParts.code($0) } ?? .init("not set"),
          change.after.map { ConsoleParts.code($0) } ?? .init("not set"),
        ]
      },
      whenEmpty: "Since its start the gate has not changed a setting by a reload. Secrets are masked and not compared.")
  }
}
