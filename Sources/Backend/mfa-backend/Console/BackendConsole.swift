internal import ByteCoding
internal import ConsoleServing
internal import MFAService

/// The console of a backend: its pages and acts over the admin socket.
struct BackendConsole: ConsolePages {
  private let backend: ConsoleLink
  private let clock: WallClock

  /// - Parameters:
  ///   - backend: The way to the admin socket.
  ///   - clock: The base of relative times.
  init(_ backend: ConsoleLink, clock: WallClock = .system) { (self.backend, self.clock) = (backend, clock) }

  var name: String { "mfa-backend" }

  var sections: [ConsoleSection] {
    [
      .init("/", "Overview"), .init("/accounts", "Accounts"), .init("/recoveries", "Recoveries"),
      .init("/queues", "Queues"), .init("/history", "History"),
    ]
  }

  var acts: [ConsoleAct] { BackendActs.all }

  /// What pages show is about people: a file of it is for the few who must have one.
  var exportRole: ConsoleRole { .admin }

  func page(
    at path: String, _ query: ConsoleForm, for viewer: ConsoleViewer
  ) async throws(ConsoleFault) -> ConsolePage? {
    let (now, backend) = (clock.now(), backend.asked(by: viewer))
    switch path {
    case "/": return try await OverviewPage.page(backend, now)
    case "/accounts": return try await AccountsPage(query: query, now: now).page(backend)
    case "/recoveries": return try await RecoveriesPage(query: query, now: now, viewer: viewer).page(backend)
    case "/queues": return try await QueuesPage.page(backend, now)
    case "/history": return try await HistoryPage(query: query, now: now).page(backend)
    case "/history/check": return try await HistoryCheckPage.page(backend)
    default:
      guard path.hasPrefix("/accounts/"), let id = AccountID(path.dropFirst("/accounts/".count)) else { return nil }
      return try await AccountPage(id: id, now: now, viewer: viewer).page(backend)
    }
  }

  func perform(_ act: ConsoleAct, _ form: ConsoleForm, for viewer: ConsoleViewer) async throws(ConsoleFault) {
    try await BackendActs.perform(act, form, backend.asked(by: viewer))
  }
}

/// The id of an account, in the form that paths and forms have.
struct AccountID: Sendable, Hashable {
  let text: String

  /// Returns `nil` unless `text` is a UUID in lower case.
  init?(_ text: some StringProtocol) {
    let digits = Array("0123456789abcdef-".utf8)
    guard text.utf8.count == 36, text.utf8.allSatisfy({ digits.contains($0) }) else { return nil }
    self.text = String(text)
  }
}
