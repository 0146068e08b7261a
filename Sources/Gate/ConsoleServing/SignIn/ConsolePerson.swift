public import ByteCoding

/// A person at a console over TLS, as their sign-in has proved them.
public struct ConsolePerson: Sendable {
  /// What the role depends on. All texts are compared by their bytes.
  enum Proof: Sendable {
    /// The subject of a client certificate (RFC 2253).
    case certificate(subject: String)
    /// The user of an OpenID provider, with the groups at the sign-in.
    case provider(issuer: String, subject: String, groups: [String])
  }

  /// The maximum bytes of a name: those of a subject of an OpenID provider, and of a short name before it.
  public static let mostNameBytes = ConsolePersonField.mostBytes
  /// The maximum bytes of a name that a provider shows for a subject.
  private static let mostShownBytes = 96
  /// The maximum number of groups that are kept. A token with more is refused.
  public static let mostGroups = 1000
  /// The maximum bytes of the name of a group. A longer one has no role.
  public static let mostGroupBytes = 256

  let proof: Proof
  /// The name for pages, and for the log and the history of the service: at most 384 bytes, without control characters,
  /// quotation marks and characters that change the direction of others.
  public let name: String

  private init(_ proof: Proof, name: String) { (self.proof, self.name) = (proof, name) }

  /// Creates the owner of a client certificate. Returns `nil` for a subject that is empty or too long for a name.
  public init?(certificate subject: String) {
    guard let name = Self.checked(subject) else { return nil }
    self.init(.certificate(subject: subject), name: name)
  }

  /// Creates the user of an OpenID provider.
  ///
  /// - Parameters:
  ///   - subject: The `sub` of the ID token, which names the user forever. Part of the name, in parentheses, so that it is
  ///     no subject of a certificate.
  ///   - name: A name that people know. The provider or the user may change it, so that it is only shown.
  ///   - groups: At most `mostGroups`.
  /// - Returns: `nil` for a subject that is empty or too long for a name, and for too many groups.
  public init?(issuer: String, subject: String, name: String?, groups: [String]) {
    guard !subject.isEmpty, groups.count <= Self.mostGroups else { return nil }
    let shown = name.flatMap { $0.utf8.count <= Self.mostShownBytes ? Self.checked($0) : nil }
    guard let checked = Self.checked(shown.map { "\($0) (\(subject))" } ?? "(\(subject))") else { return nil }
    let kept = groups.filter { $0.utf8.count <= Self.mostGroupBytes }
    self.init(.provider(issuer: issuer, subject: subject, groups: kept), name: checked)
  }

  /// Returns `text` without characters that a log or a page would show as something else; `nil` if it is empty or too
  /// long.
  private static func checked(_ text: String) -> String? {
    guard (1...mostNameBytes).contains(text.utf8.count) else { return nil }
    let shown = Shown.text(text).replacing("\"", with: "'")
    return (1...mostNameBytes).contains(shown.utf8.count) ? shown : nil
  }

  /// Distinguishes people: the same for two sign-ins of one person.
  var key: [UInt8] {
    switch proof {
    case .certificate(let subject): Array("certificate\0\(subject)".utf8)
    case .provider(let issuer, let subject, _): Array("provider\0\(issuer)\0\(subject)".utf8)
    }
  }
}

/// A client certificate that a TLS handshake has verified.
public struct ConsoleCertificate: Sendable {
  /// The subject in the notation of RFC 2253.
  public let subject: String
  /// The first instant at which the certificate is not valid any more.
  public let expiresAt: Timestamp

  public init(subject: String, expiresAt: Timestamp) { (self.subject, self.expiresAt) = (subject, expiresAt) }
}

/// The roles of people at a console over TLS. Without an entry a person has none.
public struct ConsoleDirectory: Sendable {
  /// A subject of a certificate or a group of a provider, and its role.
  public struct Entry: Sendable {
    public let name: String
    public let role: ConsoleRole

    public init(_ name: String, _ role: ConsoleRole) { (self.name, self.role) = (name, role) }
  }

  private let subjects: [Entry]
  private let issuer: String?
  private let groups: [Entry]

  /// - Parameters:
  ///   - subjects: The subjects of client certificates (RFC 2253).
  ///   - issuer: The OpenID provider whose groups have roles; `nil` without one.
  ///   - groups: The groups of this provider.
  public init(subjects: [Entry], issuer: String?, groups: [Entry]) {
    (self.subjects, self.issuer, self.groups) = (subjects, issuer, groups)
  }

  /// Returns the highest role of a person; `nil` if they have none. Names must have the same bytes: two that look alike
  /// are different, and so are two that Unicode calls equivalent.
  func role(of person: ConsolePerson) -> ConsoleRole? {
    switch person.proof {
    case .certificate(let subject):
      return subjects.filter { $0.name.hasSameBytes(as: subject) }.map(\.role).max()
    case .provider(let issuer, _, let names):
      guard self.issuer?.hasSameBytes(as: issuer) == true else { return nil }
      return groups.filter { entry in names.contains { $0.hasSameBytes(as: entry.name) } }.map(\.role).max()
    }
  }
}
