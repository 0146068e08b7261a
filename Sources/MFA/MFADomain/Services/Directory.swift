internal import ByteCoding

/// What may be read about devices.
public struct Directory: Sendable {
  let context: DomainContext

  public init(_ context: DomainContext) { self.context = context }

  /// A device's state, as far as the caller may know it.
  public struct Status: Sendable, Hashable {
    public let method: MFAMethod
    public let hasPublicKey: Bool
    /// In full for the device's user; masked for the app instance it is bound to.
    public let phoneNumber: String?
    public let isAttested: Bool
  }

  /// The devices of the caller's own account.
  public func devices(of username: Username, for caller: Caller) async throws -> [Device] {
    let now = context.clock.now()
    return try await context.store.read { records in
      let (_, user) = try records.session(of: caller, at: now)
      guard user.isNamed(username) else { throw MFARefusal.forbidden }
      return try records.devices(of: user.id)
    }
  }

  /// `nil` for a device that is not enrolled, and for one that is none of the caller's business.
  public func status(of deviceID: DeviceID, for caller: Caller) async throws -> Status? {
    let now = context.clock.now()
    let found: (device: Device, isOwner: Bool)? = try await context.store.read { records in
      let owner = caller.session == nil ? nil : try records.session(of: caller, at: now).user
      guard let device = try records.device(deviceID), device.removedAt == nil else { return nil }
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
