public import ByteCoding

/// The dependencies of the services of the domain.
public struct DomainContext: Sendable {
  public let store: any Store
  public let vault: Vault
  public let outbox: any Outbox
  /// Sends push notifications; `nil` if no push service is configured.
  public let pushOutbox: (any PushOutbox)?
  public let tokens: any AccessTokenIssuer
  public let clock: WallClock
  public let entropy: Entropy
  public let policy: Policy
  public let hub: NotificationHub
  /// The verifier of the identity provider's tokens; `nil` if no provider is configured.
  public let provider: (any IdentityTokenVerifier)?

  public init(
    store: any Store, vault: Vault, outbox: any Outbox, tokens: any AccessTokenIssuer, clock: WallClock = .system,
    entropy: Entropy = .system, policy: Policy = Policy(), hub: NotificationHub = NotificationHub(),
    provider: (any IdentityTokenVerifier)? = nil, pushOutbox: (any PushOutbox)? = nil
  ) {
    self.store = store
    self.vault = vault
    self.outbox = outbox
    self.pushOutbox = pushOutbox
    self.tokens = tokens
    self.clock = clock
    self.entropy = entropy
    self.policy = policy
    self.hub = hub
    self.provider = provider
  }
}

/// The settings of the domain.
public struct Policy: Sendable, Hashable {
  /// Devices of one account.
  public var mostDevices = 10
  /// The maximum age of a proof for an operation that cannot be undone.
  public var freshProof = Duration.seconds(300)
  /// The messages within an hour that one address may cause, per channel; `nil` for no limit, where all clients share
  /// one address.
  public var mostMessagesOfAddress: Int? = 30
  /// The messages within an hour that one app instance may cause, per channel.
  public var mostMessagesOfInstance = 30
  /// The accounts that one app instance may create.
  public var mostAccountsOfInstance = 10
  /// The messages within an hour to all users together, per channel.
  public var mostMessages = 3000
  /// The domain for which autofill suggests codes.
  public var domain = "localhost"
  /// The name that authenticator apps and security keys show.
  public var issuer = "Sallyport"

  /// The users who must set up a second factor, within `gracePeriod` of the beginning of that requirement.
  public enum SecondFactorPolicy: String, Sendable, Hashable { case notRequired = "nobody", admins, everyone }

  public var secondFactorPolicy = SecondFactorPolicy.notRequired
  /// The beginning of the requirement; `nil` for the creation of each account.
  public var policySince: Timestamp?
  public var gracePeriod = Duration.seconds(7 * 86400)
  /// How long a recovery by a backup code waits before it can be completed; `nil` to turn recoveries off.
  public var recoveryWait: Duration? = .seconds(86400)
  /// The risk from which a trusted device must give the second factor, 1 to 100; `nil` for never.
  public var stepUpScore: Int?
  /// Whether a trusted device skips the second factor only in networks that it was used from.
  public var bindsTrustToNetwork = false
  public var deviceUnlock = Unlock.any
  /// Whether the operator vouches that the app keeps the keys of its devices in hardware that requires the user's
  /// unlock. Attestation proves the app's own key only, not the place of a device's key.
  public var vouchesForDeviceKeys = false
  /// Whether a client may require biometrics before it shows the code.
  public var allowsBiometricGate = true
  /// The push services that the backend can send by. Addresses of others are not kept.
  public var pushServices: Set<PushAddress.Service> = []
  /// Whether a notice about the security of an account is a push notification as well.
  public var pushesNotices = false
  /// The relying party of security keys; `nil` to turn them off.
  public var relyingParty: RelyingParty?

  public init() {}

  /// The authentication method reference (RFC 8176) of a proof by the key of a device with this binding.
  func reference(ofKeyBoundTo binding: Binding) -> String {
    if binding == .debugBuild { return "swk" }
    return vouchesForDeviceKeys ? "hwk" : "pop"
  }

  /// Whether `user`, who has no second factor, must set one up before other operations.
  func blocks(_ user: User, at now: Timestamp) -> Bool { requirement(for: user, at: now)?.isInGrace == false }

  /// The requirement of a second factor for `user`; `nil` if none is required.
  func requirement(for user: User, at now: Timestamp) -> Requirement? {
    var since = max(user.createdAt, policySince ?? user.createdAt)
    switch secondFactorPolicy {
    case .notRequired: return nil
    case .admins:
      if !user.isAdmin { return nil }
      since = max(since, user.adminSince ?? since)
    case .everyone: break
    }
    let end = since.advanced(by: gracePeriod)
    return Requirement(since: since, graceEnds: end, isInGrace: now < end)
  }

  /// Reads the beginning of the requirement from the store. The first start under a requirement stores `now`.
  ///
  /// A start under another requirement replaces it, so all backends on one database must have the same.
  public mutating func datePolicy(in store: any Store, at now: Timestamp) async throws {
    let word = secondFactorPolicy == .notRequired ? nil : secondFactorPolicy.rawValue
    policySince = try await store.write { try $0.datePolicy(word, at: now) }
  }
}

/// The requirement to set up a second factor.
public struct Requirement: Sendable, Hashable {
  public let since: Timestamp
  public let graceEnds: Timestamp
  public let isInGrace: Bool
}
