public import AppAttest
public import ByteCoding

/// One way of being let in.
public protocol AdmissionRule: Sendable {
  /// Who the claim proves to be: `nil` if it holds nothing of this rule's kind, so that the next rule is asked.
  ///
  /// What is there but bad throws. What this returns is final: all that it takes has been spent, durably.
  func evaluate(_ claim: AdmissionClaim, at now: Timestamp) async throws(Denial) -> Principal?
}

/// Decides who is let in. There is no other way to an `Admission`.
public struct Gate: Sendable {
  public enum Enforcement: String, Sendable, Hashable, CaseIterable {
    /// Only who proves to be someone is let in.
    case enforce
    /// Verifies, spends and counts like `enforce`, and admits a client that was denied anonymously.
    case monitor
    /// Everyone is let in and nothing is looked at.
    case off
  }

  public let enforcement: Enforcement
  private let rules: [any AdmissionRule]
  private let clock: WallClock

  /// A gate that asks `rules` in their order.
  public init(rules: [any AdmissionRule], enforcement: Enforcement = .enforce, clock: WallClock = .system) {
    self.rules = rules
    self.enforcement = enforcement
    self.clock = clock
  }

  /// Lets the bearer of `claim` in, or throws why not. The first rule that finds something of its kind decides.
  public func admit(_ claim: AdmissionClaim) async throws(Denial) -> Admission {
    let now = clock.now()
    if enforcement == .off { return Admission(principal: .anyone, at: now) }
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

/// The proof that the gate has let someone in. Only a `Gate` makes one.
public struct Admission: Sendable, Hashable {
  public let principal: Principal
  public let at: Timestamp
  /// Why an enforcing gate would have refused; only a gate that watches lets in despite it.
  public let overruled: Denial?

  init(principal: Principal, at: Timestamp, overruled: Denial? = nil) {
    self.principal = principal
    self.at = at
    self.overruled = overruled
  }
}

/// Who was let in.
public enum Principal: Sendable, Hashable {
  /// A device, by an assertion of its attested key.
  case device(DevicePrincipal)
  /// A debug build, by the client certificate that all debug builds share: no proof of a device.
  case certificate(VerifiedCertificate)
  /// The gate stands open, or only watches.
  case anyone

  /// The words of `method`.
  public static let methods = ["app-attest", "mtls", "none"]

  /// How the principal was proved, in a word.
  public var method: String {
    switch self {
    case .device: "app-attest"
    case .certificate: "mtls"
    case .anyone: "none"
    }
  }
}

/// A device that proved its key.
public struct DevicePrincipal: Sendable, Hashable {
  public let keyID: KeyID
  public let appID: AppID
  public let environment: AttestEnvironment
  public let counter: SignCount
  /// From where the app was installed, as the assertion says or else the attestation.
  public let category: ValidationCategory?
}
