internal import ByteCoding

/// The devices that a caller may read about.
public struct Directory: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// The state of a device, as far as the caller may read it.
  public struct Status: Sendable, Hashable {
    public let method: MFAMethod
    public let hasPublicKey: Bool
    /// In full for the device's user; masked for the app instance that the device is bound to.
    public let phoneNumber: String?
    public let isAttested: Bool
  }

  /// The devices of the caller's own account.
  ///
  /// - Throws: `.forbidden` for another account.
  public func devices(of username: Username, for caller: Caller) async throws -> [Device] {
    try await context.read(by: caller) { work in
      let (_, user) = try work.session()
      guard user.isNamed(username) else { throw MFARefusal.forbidden }
      return try work.records.devices(of: user.id)
    }
  }

  /// The state of a device; `nil` for a device that is not enrolled, and for one that neither belongs to the caller's
  /// account nor is bound to its app instance.
  public func status(of deviceID: DeviceID, for caller: Caller) async throws -> Status? {
    let found: (device: Device, isOwner: Bool)? = try await context.read(by: caller) { work in
      var owner: User?
      // Without a full session the caller learns what it would without any.
      do { if caller.session != nil { owner = try work.session().user } } catch MFARefusal.sessionRequired {
      } catch MFARefusal.secondFactorRequired {}
      guard let device = try work.records.device(deviceID), device.removedAt == nil else { return nil }
      let isOwner = owner?.id == device.userID
      return isOwner || device.binding == caller.identity.binding ? (device, isOwner) : nil
    }
    guard let (device, isOwner) = found else { return nil }
    let number = try device.phoneNumber.map {
      try PhoneNumber(context.vault.openText($0, for: Enrolment.phonePlace(device.id)))
    }
    return Status(
      method: device.method, hasPublicKey: device.publicKey != nil,
      phoneNumber: isOwner ? number?.text : number?.masked, isAttested: device.isAttested)
  }
}
