public import ByteCoding
internal import Locking

/// The people at a console over TLS: their sign-ins, sessions and roles.
public final class ConsolePeople: Sendable {
  /// What the service that runs a console writes to its log.
  public enum Event: Sendable {
    case signedIn(ConsolePerson, ConsoleRole, address: String?)
    case signedOut(ConsolePerson)
    /// The person has no role, or has it no longer.
    case lostRole(ConsolePerson)
    /// A certificate or an account at the provider has no role.
    case withoutRole(String, address: String?)
    /// The provider did not answer, or its answer was refused.
    case providerRefused(reason: String, address: String?)
  }

  /// How people can sign in, and their roles.
  public struct Rules: Sendable {
    /// Whether clients are asked for a certificate.
    public let acceptsCertificates: Bool
    public let provider: (any ConsoleProvider)?
    public let directory: ConsoleDirectory

    public init(acceptsCertificates: Bool, provider: (any ConsoleProvider)?, directory: ConsoleDirectory) {
      (self.acceptsCertificates, self.provider, self.directory) = (acceptsCertificates, provider, directory)
    }

    func role(of person: ConsolePerson) -> ConsoleRole? {
      if case .certificate = person.proof, !acceptsCertificates { return nil }
      return directory.role(of: person)
    }
  }

  let sessions: ConsoleSessions
  let signIns: ConsoleSignIns
  private let current: LockedValue<Rules>
  private let exchanges = LockedValue<[String: Int]>([:])
  private let clock: WallClock
  let report: @Sendable (Event) -> Void

  /// - Parameter report: Must not block.
  public init(_ rules: Rules, clock: WallClock = .system, report: @escaping @Sendable (Event) -> Void = { _ in }) {
    current = LockedValue(rules)
    sessions = ConsoleSessions(clock: clock)
    signIns = ConsoleSignIns(clock: clock)
    (self.clock, self.report) = (clock, report)
  }

  var rules: Rules { current.withLock(\.self) }

  /// The number of open sessions.
  public var sessionCount: Int { sessions.count }

  /// Applies new settings. Sessions of people without a role in them end.
  public func replace(_ rules: Rules) {
    current.withLock { $0 = rules }
    for person in sessions.end(where: { rules.role(of: $0) == nil }) { report(.lostRole(person)) }
  }

  /// Who asks, and with which session.
  struct Caller: Sendable {
    let session: ConsoleSessions.Session
    let role: ConsoleRole
  }

  /// Returns the person with one of `cookies`; `nil` if there is no session, or its person has no role any more.
  ///
  /// A session by certificate needs a connection with a certificate of the same subject: without it a stolen cookie is of
  /// no use, and the session stays.
  func caller(_ cookies: [String], _ certificate: ConsoleCertificate?) -> Caller? {
    guard let session = sessions.session(of: cookies) else { return nil }
    if case .certificate(let subject) = session.person.proof {
      guard let certificate = valid(certificate), certificate.subject.hasSameBytes(as: subject) else { return nil }
    }
    guard let role = rules.role(of: session.person) else {
      sessions.end(session)
      report(.lostRole(session.person))
      return nil
    }
    return Caller(session: session, role: role)
  }

  /// A connection can outlive its certificate.
  func valid(_ certificate: ConsoleCertificate?) -> ConsoleCertificate? {
    certificate.flatMap { clock.now() < $0.expiresAt ? $0 : nil }
  }

  // MARK: Exchanges with the provider

  /// The maximum number of exchanges with the provider at a time, and of those for one address.
  private static let (mostExchanges, mostOfAddress) = (16, 2)

  /// Runs an exchange with the provider, unless too many run.
  func exchange<Value: Sendable>(
    for address: String?, _ body: () async throws(ConsoleFault) -> Value
  ) async throws(ConsoleFault) -> Value {
    let address = address ?? ""
    let isFree = exchanges.withLock { running in
      guard running.values.reduce(0, +) < Self.mostExchanges, running[address, default: 0] < Self.mostOfAddress else {
        return false
      }
      running[address, default: 0] += 1
      return true
    }
    guard isFree else {
      throw ConsoleFault(503, "Too many people sign in at this moment.", hint: "Wait a moment, and sign in again.")
    }
    defer {
      exchanges.withLock { running in
        let rest = running[address, default: 1] - 1
        running[address] = rest > 0 ? rest : nil
      }
    }
    return try await body()
  }
}
