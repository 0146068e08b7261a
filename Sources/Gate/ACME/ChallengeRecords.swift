internal import ProcessFrame

/// The TXT record of a DNS-01 challenge (RFC 8555 section 8.4).
public struct ChallengeRecord: Sendable, Hashable {
  /// `_acme-challenge.example.com`, without a dot at its end.
  public let name: String
  /// The SHA-256 digest of the key authorization in base64url.
  public let value: String

  public init(name: String, value: String) { (self.name, self.value) = (name, value) }
}

/// Writes the records of challenges into the DNS.
public protocol ChallengeRecords: Sendable {
  /// How long the servers of the zone take to answer with a new record.
  var wait: Duration { get }

  /// Adds `record` to those of its name: a name and its wildcard have a record each.
  ///
  /// - Throws: `ACMEError.record`.
  func add(_ record: ChallengeRecord) async throws(ACMEError)

  /// Removes `record`, also if `add` has failed.
  ///
  /// - Throws: `ACMEError.record`.
  func remove(_ record: ChallengeRecord) async throws(ACMEError)
}

/// Calls a program of the operator: `PROGRAM present NAME VALUE`, later `PROGRAM cleanup NAME VALUE`.
public struct RecordHook: ChallengeRecords {
  /// An absolute path.
  public let program: String
  public let wait: Duration
  private let limit: Duration

  /// - Parameter limit: The time for one call.
  public init(program: String, wait: Duration, limit: Duration = .seconds(60)) {
    (self.program, self.wait, self.limit) = (program, wait, limit)
  }

  public func add(_ record: ChallengeRecord) async throws(ACMEError) { try await call("present", record) }
  public func remove(_ record: ChallengeRecord) async throws(ACMEError) { try await call("cleanup", record) }

  private func call(_ verb: String, _ record: ChallengeRecord) async throws(ACMEError) {
    try await ShortProgram(path: program, arguments: [verb, record.name, record.value], limit: limit)
      .run(for: record, as: "\(program) \(verb)")
  }
}

/// Sends dynamic updates (RFC 2136), signed with a key (TSIG, RFC 8945), by the program `nsupdate`.
public struct DynamicUpdates: ChallengeRecords {
  /// The primary server of the zone: a host name or an address, without brackets.
  public let host: String
  public let port: UInt16
  /// A key file as `tsig-keygen` writes it. An absolute path.
  public let keyFile: String
  public let wait: Duration
  private let limit: Duration

  /// - Parameter limit: The time for one update.
  public init(host: String, port: UInt16, keyFile: String, wait: Duration, limit: Duration = .seconds(30)) {
    (self.host, self.port, self.keyFile, self.wait, self.limit) = (host, port, keyFile, wait, limit)
  }

  /// The path of `nsupdate`; `nil` if it is not installed.
  public static var program: String? {
    ["/usr/bin/nsupdate", "/usr/local/bin/nsupdate"].first(where: ShortProgram.isExecutable)
  }

  /// The seconds for which other servers may keep the record.
  private static let timeToLive = 60

  public func add(_ record: ChallengeRecord) async throws(ACMEError) {
    try await send("update add \(record.name). \(Self.timeToLive) IN TXT \"\(record.value)\"", for: record)
  }

  public func remove(_ record: ChallengeRecord) async throws(ACMEError) {
    try await send("update delete \(record.name). IN TXT \"\(record.value)\"", for: record)
  }

  private func send(_ update: String, for record: ChallengeRecord) async throws(ACMEError) {
    guard let program = Self.program else {
      throw .record(name: record.name, reason: "nsupdate is not installed (Debian: bind9-dnsutils)")
    }
    let commands = "server \(host) \(port)\n\(update)\nsend\n"
    // TCP: nothing is sent twice, and a server that is not there refuses at once.
    try await ShortProgram(path: program, arguments: ["-v", "-k", keyFile], input: Array(commands.utf8), limit: limit)
      .run(for: record, as: "nsupdate at \(host) port \(port)")
  }
}

extension ShortProgram {
  /// - Throws: `ACMEError.record` unless the program exits with status 0.
  fileprivate func run(for record: ChallengeRecord, as name: String) async throws(ACMEError) {
    let outcome = await run()
    let end =
      switch outcome.ending {
      case .exited(status: 0): nil as String?
      case .exited(let status): "exited with status \(status)"
      case .killed(let signal): "was killed by signal \(signal)"
      case .lost: "exited with a status that is not known"
      case .timedOut: "did not end within \(limit.components.seconds) s"
      case .notStarted(let reason): "cannot be started: \(reason)"
      }
    guard let end else { return }
    let text = outcome.output.isEmpty ? "" : ": \(outcome.output)"
    throw .record(name: record.name, reason: "\(name) \(end)\(text)")
  }
}
