/// The state of one thing that the backend needs to serve.
public struct ReadinessCheck: Codable, Sendable, Hashable {
  public let name: String
  public let ready: Bool
  /// The last known state, for people.
  public let detail: String

  public init(_ name: String, ready: Bool, _ detail: String) {
    self.name = name
    self.ready = ready
    self.detail = detail
  }
}

/// The state of a running backend: the answer of `/v1/status`.
public struct BackendStatus: Codable, Sendable, Hashable {
  /// The waiting messages of one queue.
  public struct Delivery: Codable, Sendable, Hashable {
    /// `sms`, `email`, `apns` or `fcm`.
    public let kind: String
    /// Where messages go: `off`, `log`, or the name of the provider's server.
    public let provider: String
    /// The messages that wait for their first attempt.
    public let queued: Int
    /// The messages that wait for another attempt.
    public let retrying: Int
    /// Why the provider is not asked; `nil` if it is.
    public let fault: String?
    /// The messages that the provider has accepted since the start.
    public let sent: UInt64
    /// The messages that were refused, expired, dropped or lost since the start.
    public let failed: UInt64
    /// Why the last one of `failed` was not delivered, as the log has it.
    public let lastFailure: String?
    /// When that was, in RFC 3339.
    public let lastFailureAt: String?

    public init(
      kind: String, provider: String, queued: Int, retrying: Int, fault: String? = nil, sent: UInt64 = 0,
      failed: UInt64 = 0, lastFailure: String? = nil, lastFailureAt: String? = nil
    ) {
      self.fault = fault
      self.sent = sent
      self.failed = failed
      self.lastFailure = lastFailure
      self.lastFailureAt = lastFailureAt
      self.kind = kind
      self.provider = provider
      self.queued = queued
      self.retrying = retrying
    }
  }

  /// The configuration in use.
  public struct Configuration: Codable, Sendable, Hashable {
    /// The file; `nil` if all settings come from flags and variables.
    public let file: String?
    /// When it was loaded, in RFC 3339.
    public let loadedAt: String
    /// Why the last reload was refused; `nil` if it was not.
    public let fault: String?

    public init(file: String?, loadedAt: String, fault: String?) {
      self.file = file
      self.loadedAt = loadedAt
      self.fault = fault
    }
  }

  public let version: String
  public let ready: Bool
  public let checks: [ReadinessCheck]
  public let uptimeSeconds: Int64
  /// Where the backend serves, such as `127.0.0.1:8080`.
  public let address: String
  public let sockets: Int
  public let delivery: [Delivery]
  /// The database, without a password.
  public let store: String
  public let configuration: Configuration

  public init(
    version: String, ready: Bool, checks: [ReadinessCheck], uptimeSeconds: Int64, address: String, sockets: Int,
    delivery: [Delivery], store: String, configuration: Configuration
  ) {
    self.version = version
    self.ready = ready
    self.checks = checks
    self.uptimeSeconds = uptimeSeconds
    self.address = address
    self.sockets = sockets
    self.delivery = delivery
    self.store = store
    self.configuration = configuration
  }
}

/// The result of an attempt to reload the configuration.
public enum ReloadOutcome: Sendable, Hashable {
  /// The new configuration is in use. Changes of these settings need a restart.
  case done(needingRestart: [String])
  /// The old configuration stays in use.
  case refused(faults: [String], hint: String?)
}

/// The answer to a reload.
public struct ReloadReply: Codable, Sendable, Hashable {
  public let reloaded: Bool
  /// The keys of the changed settings that take effect only after a restart.
  public let needsRestart: [String]

  public init(reloaded: Bool, needsRestart: [String]) {
    self.reloaded = reloaded
    self.needsRestart = needsRestart
  }
}

/// The answer to a shutdown that began.
public struct DrainReply: Codable, Sendable, Hashable {
  public let draining: Bool

  public init(draining: Bool) { self.draining = draining }
}

/// The answer of a refused request of an operator.
public struct AdminErrorBody: Codable, Sendable, Hashable {
  public let error: String
  public let code: String
  public let hint: String?

  public init(error: String, code: String, hint: String?) {
    self.error = error
    self.code = code
    self.hint = hint
  }
}
