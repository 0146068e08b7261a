public import ByteCoding

/// What every service of the domain works with.
public struct DomainContext: Sendable {
  public let store: any Store
  public let vault: Vault
  public let outbox: any Outbox
  public let tokens: any AccessTokenIssuer
  public let clock: WallClock
  public let entropy: Entropy
  public let policy: Policy
  public let hub: NotificationHub

  public init(
    store: any Store, vault: Vault, outbox: any Outbox, tokens: any AccessTokenIssuer, clock: WallClock = .system,
    entropy: Entropy = .system, policy: Policy = Policy(), hub: NotificationHub = NotificationHub()
  ) {
    self.store = store
    self.vault = vault
    self.outbox = outbox
    self.tokens = tokens
    self.clock = clock
    self.entropy = entropy
    self.policy = policy
    self.hub = hub
  }
}

/// What an operator may decide differently.
public struct Policy: Sendable, Hashable {
  /// Devices of one account.
  public var mostDevices = 10
  /// How old a proof may be for an operation that cannot be undone.
  public var freshProof = Duration.seconds(300)
  /// Messages within an hour that one address may cause, by each channel; `nil` for no limit of its own, where all
  /// clients share one address.
  public var mostMessagesOfAddress: Int? = 30
  /// Messages within an hour that one app instance may have sent, by each channel.
  public var mostMessagesOfInstance = 30
  /// Accounts that one app instance may create.
  public var mostAccountsOfInstance = 10
  /// Messages within an hour to all users together, by each channel.
  public var mostMessages = 3000
  /// The domain for which autofill offers codes.
  public var domain = "localhost"
  /// The name that authenticator apps and security keys show.
  public var issuer = "Sallyport"

  /// Who must set a second factor up, within `gracePeriod` of the day on which that became their duty.
  public enum SecondFactorPolicy: String, Sendable, Hashable { case notRequired = "nobody", admins, everyone }

  public var secondFactorPolicy = SecondFactorPolicy.notRequired
  /// Since when the obligation is asked for; `nil` for ever.
  public var policySince: Timestamp?
  public var gracePeriod = Duration.seconds(7 * 86400)
  /// How long a recovery by a code on paper waits before it brings a device in; `nil` for no such recovery.
  public var recoveryWait: Duration? = .seconds(86400)
  /// From which risk on a trusted device is asked for the second factor all the same, 1 to 100; `nil` for never.
  public var stepUpScore: Int?
  /// Whether a trusted device is spared the second factor in the networks alone that it was used from.
  public var bindsTrustToNetwork = false
  public var deviceUnlock = Unlock.any
  /// Whether the operator vouches that the app keeps the keys of its devices in hardware that asks for the user's
  /// unlock. Attestation proves the app's own key alone: where a device's key is kept shows nowhere.
  public var vouchesForDeviceKeys = false
  /// Whether a client may put its biometric gate in front of the code.
  public var allowsBiometricGate = true
  /// The relying party of security keys; `nil` where they are off.
  public var relyingParty: RelyingParty?

  public init() {}

  /// How tokens name the proof by a device's key that `binding` is bound to (RFC 8176): by what was proved.
  func reference(ofKeyBoundTo binding: Binding) -> String {
    if binding == .debugBuild { return "swk" }
    return vouchesForDeviceKeys ? "hwk" : "pop"
  }

  /// Whether `user`, who has no second factor, must set one up before anything else.
  func blocks(_ user: User, at now: Timestamp) -> Bool { requirement(for: user, at: now)?.isInGrace == false }

  /// Since when `user` must have a second factor, and until when they may be without; `nil` if none is asked for.
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

  /// Finds out since when the obligation is asked for: from `now` on, unless an earlier start under it has kept that.
  ///
  /// A start under another one forgets it, so of several backends on one database all are to have the same.
  public mutating func datePolicy(in store: any Store, at now: Timestamp) async throws {
    let word = secondFactorPolicy == .notRequired ? nil : secondFactorPolicy.rawValue
    policySince = try await store.write { try $0.datePolicy(word, at: now) }
  }
}

/// The duty to set a second factor up.
public struct Requirement: Sendable, Hashable {
  public let since: Timestamp
  public let graceEnds: Timestamp
  public let isInGrace: Bool
}
