public import ByteCoding
internal import Foundation

/// The addresses of devices at push services: registration and removal.
public struct PushAddresses: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// Registers the push address of the caller's device, in place of the one that it had.
  ///
  /// The platform of the attested key selects the service. A token that another device has registered moves to this
  /// one: a telephone that changed hands must not get the pushes of its former owner.
  ///
  /// - Parameter text: the token that the service gave to the app instance.
  /// - Returns: whether the backend sends by that service: it is set up, and the name of an app of Apple's has a bundle
  ///   id. Otherwise the address is not kept.
  /// - Throws: `InvalidValue` for a text that is not a token of the service; `.forbidden` for a debug build, whose app is
  ///   not known, and for a session without a device; what `UnitOfWork.session` throws.
  public func register(_ text: String, by caller: Caller) async throws -> Bool {
    try await context.write(by: caller) { work in
      let (session, user) = try work.session()
      guard let platform = caller.identity.platform, let deviceID = session.deviceID else {
        throw MFARefusal.forbidden
      }
      let service = PushAddress.Service(of: platform)
      let token = try PushToken(text, for: service)
      guard work.policy.pushServices.contains(service),
        service != .apns || PushAddress.bundleID(of: caller.identity.app) != nil
      else {
        if let address = try work.records.pushAddress(of: deviceID) {
          _ = try work.records.removePushAddress(of: deviceID)
          try work.notePushRemoval(of: address, because: "off")
        }
        return false
      }
      guard let device = try work.records.device(deviceID), device.removedAt == nil,
        device.binding == caller.identity.binding
      else { throw MFARefusal.forbidden }
      let hash = Self.hash(token, of: service, in: work.vault)
      let known = try work.records.pushAddress(tokenHash: hash)
      if let known, known.deviceID != deviceID {
        try work.notePushRemoval(of: known, because: "moved")
      }
      try work.records.save(
        PushAddress(
          deviceID: deviceID, userID: user.id, service: service, app: caller.identity.app,
          isProduction: caller.identity.environment == .production,
          token: work.vault.seal(token.text, for: Self.place(deviceID)), tokenHash: hash,
          language: caller.languages.tags.first ?? user.language, registeredAt: work.now))
      if known?.deviceID != deviceID {
        try work.note(.pushAddressRegistered, of: user, ["device=\(deviceID.text)", "service=\(service.rawValue)"])
      }
      return true
    }
  }

  /// Removes the push address of the caller's device. A device without one is not an error.
  ///
  /// - Throws: what `UnitOfWork.session` throws.
  public func unregister(by caller: Caller) async throws {
    try await context.write(by: caller) { work in
      let (session, _) = try work.session()
      guard let deviceID = session.deviceID, let address = try work.records.pushAddress(of: deviceID) else { return }
      _ = try work.records.removePushAddress(of: deviceID)
      try work.notePushRemoval(of: address, because: "unregistered")
    }
  }

  /// Removes an address that its service does not know, unless its app instance has registered it again since.
  ///
  /// - Parameter instant: when the service found that the address is not valid.
  /// - Returns: whether it was removed.
  public static func forget(
    _ address: PushAddress, unknownSince instant: Timestamp, in store: any Store, at now: Timestamp
  ) async throws -> Bool {
    try await store.write { records in
      guard let known = try records.pushAddress(of: address.deviceID), known.tokenHash == address.tokenHash,
        known.registeredAt <= instant
      else { return false }
      _ = try records.removePushAddress(of: address.deviceID)
      let user = try records.user(known.userID)
      try records.note(
        .pushAddressRemoved, by: NamedActor.backend, account: user?.username.key,
        ["device=\(known.deviceID.text)", "service=\(known.service.rawValue)", "reason=unknown"], at: now)
      return true
    }
  }

  /// The place of the token of a device, for the vault.
  static func place(_ deviceID: DeviceID) -> String { "push token:\(deviceID.text)" }

  private static func hash(_ token: PushToken, of service: PushAddress.Service, in vault: Vault) -> [UInt8] {
    vault.hash(service.rawValue, token.text, as: "push token")
  }
}

extension PushAddress {
  /// The same address with its token sealed again.
  func with(_ token: Sealed) -> PushAddress {
    PushAddress(
      deviceID: deviceID, userID: userID, service: service, app: app, isProduction: isProduction, token: token,
      tokenHash: tokenHash, language: language, registeredAt: registeredAt)
  }
}

extension UnitOfWork {
  /// Records in the history of its account that an address is removed.
  fileprivate func notePushRemoval(of address: PushAddress, because reason: String) throws {
    try note(
      .pushAddressRemoved, account: try records.user(address.userID)?.username.key,
      ["device=\(address.deviceID.text)", "service=\(address.service.rawValue)", "reason=\(reason)"])
  }
}
