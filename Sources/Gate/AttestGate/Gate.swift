public import AndroidKeyAttestation
public import AppAttest
public import ByteCoding

/// A method by which a client can prove what it is.
public protocol AdmissionRule: Sendable {
  /// Verifies the claim and returns the principal, or `nil` if the claim has no credentials for this rule; the next
  /// rule is then asked.
  ///
  /// Credentials that are present but invalid throw. A returned principal is final: everything that the admission
  /// consumes has been spent durably.
  func evaluate(_ claim: AdmissionClaim, at now: Timestamp) async throws(Denial) -> Principal?
}

/// Decides whether a client is admitted. Only a `Gate` can create an `Admission`.
public struct Gate: Sendable {
  /// What the gate does with a client that no rule admits.
  public enum Enforcement: String, Sendable, Hashable, CaseIterable, Codable {
    /// Admits only clients that pass a rule.
    case enforce
    /// Monitor mode: verifies, spends and counts as `enforce` does, but admits a refused client anonymously.
    case monitor
    /// Enforcement off: admits every client and verifies nothing.
    case off
  }

  public let enforcement: Enforcement
  private let rules: [any AdmissionRule]
  private let clock: WallClock

  /// Creates a gate that asks `rules` in order.
  public init(rules: [any AdmissionRule], enforcement: Enforcement = .enforce, clock: WallClock = .system) {
    self.rules = rules
    self.enforcement = enforcement
    self.clock = clock
  }

  /// Admits any client if enforcement is off; `nil` if `admit` has to decide.
  public func admitAtOnce() -> Admission? {
    enforcement == .off ? Admission(principal: .anyone, at: clock.now()) : nil
  }

  /// Admits the client or throws the reason for the refusal. The first rule that finds its kind of credentials
  /// decides.
  public func admit(_ claim: AdmissionClaim) async throws(Denial) -> Admission {
    if let admission = admitAtOnce() { return admission }
    let now = clock.now()
    do throws(Denial) {
      return Admission(principal: try await principal(of: claim, at: now), at: now)
    } catch {
      return try overrule(error)
    }
  }

  /// In monitor mode, admits the client anonymously despite `denial`; otherwise throws it.
  public func overrule(_ denial: Denial) throws(Denial) -> Admission {
    guard enforcement == .monitor else { throw denial }
    return Admission(principal: .anyone, at: clock.now(), overruled: denial)
  }

  private func principal(of claim: AdmissionClaim, at now: Timestamp) async throws(Denial) -> Principal {
    for rule in rules {
      if let principal = try await rule.evaluate(claim, at: now) { return principal }
    }
    throw .noCredentials
  }
}

/// The proof that the gate admitted a client. Only a `Gate` creates it.
public struct Admission: Sendable, Hashable {
  public let principal: Principal
  public let at: Timestamp
  /// The reason for which `enforce` would have refused the client. Set only in monitor mode.
  public let overruled: Denial?

  init(principal: Principal, at: Timestamp, overruled: Denial? = nil) {
    self.principal = principal
    self.at = at
    self.overruled = overruled
  }
}

/// The identity of an admitted client.
public enum Principal: Sendable, Hashable {
  /// A device, identified by an assertion of its attested key.
  case device(DevicePrincipal)
  /// A debug build with the client certificate that all debug builds share. It identifies no device.
  case certificate(VerifiedCertificate)
  /// An anonymous client: enforcement is off, or monitor mode admitted it.
  case anyone

  /// All values of `method`.
  public static let methods = ["app-attest", "android-key", "mtls", "none"]

  /// The method that proved the principal, as a stable word.
  public var method: String {
    switch self {
    case .device(let device): device.method
    case .certificate: "mtls"
    case .anyone: "none"
    }
  }
}

/// A device that proved possession of its key.
public struct DevicePrincipal: Sendable, Hashable {
  /// What the key's platform proves beyond possession.
  public enum Evidence: Sendable, Hashable {
    /// - category: The source from which the app was installed: as reported by the assertion, otherwise by the
    ///   attestation.
    case appAttest(counter: SignCount, category: ValidationCategory?)
    case android(AttestedAndroidKey)
  }

  public let keyID: KeyID
  /// The public name of `keyID`.
  public let keyHash: KeyHash
  public let app: AppName
  public let environment: AttestEnvironment
  public let evidence: Evidence
  /// The current risk metric; `nil` if it is not known.
  public let risk: KeyRisk?

  init(_ key: DeviceKey, hash: KeyHash, evidence: Evidence, risk: KeyRisk?) {
    keyID = key.keyID
    keyHash = hash
    app = key.app
    environment = key.environment
    self.evidence = evidence
    self.risk = risk
  }

  /// The counter of the assertion; `nil` for a key without one.
  public var counter: SignCount? {
    if case .appAttest(let counter, _) = evidence { counter } else { nil }
  }

  /// The source from which the app was installed; `nil` if the device reported none.
  public var category: ValidationCategory? {
    if case .appAttest(_, let category) = evidence { category } else { nil }
  }

  /// See `Principal.method`.
  var method: String {
    switch evidence {
    case .appAttest: "app-attest"
    case .android: "android-key"
    }
  }
}
