internal import ByteCoding
internal import Foundation

// A device gets its push notification even while one of its sockets is open. The backend cannot know whether such a
// socket is heard: the system may have suspended the app a moment ago, the network may be gone, and with several backends
// the socket may be at another one. An app in the foreground gets both and shows one, because both have the same id.

extension UnitOfWork {
  /// Queues a push notification of `push` to each of the user's devices that may answer it: another device and another
  /// app instance than those of the session that asks, with a key and a full session.
  func pushSignIn(_ push: PushChallenge, of asking: LoginSession) throws {
    for (address, device) in try addressedDevices(of: push.userID)
    where device.publicKey != nil && device.id != asking.deviceID && device.binding != asking.binding {
      send(.signIn(push: push.id), to: address, until: push.expiresAt)
    }
  }

  /// Queues a push notification of the last of the user's new notices, for each user in `notices`, unless the user has
  /// had too many in the last hour.
  func pushNotices(_ notices: [UUID: PushedNotices]) throws {
    for (userID, pushed) in notices {
      guard try hasRoomForNotice(userID, pushed.sequence) else { continue }
      for address in pushed.addresses {
        send(.notice(sequence: pushed.sequence), to: address, until: now.advanced(by: Notice.pushLifetime))
      }
    }
  }

  private func hasRoomForNotice(_ userID: UUID, _ sequence: Int64) throws -> Bool {
    let start = now.advanced(by: .seconds(-3600))
    // Later ones are of a clock that ran ahead, and would count until their time.
    let end = now.advanced(by: RecordMaintenance.clockDifference)
    // A transaction has a few notices, of which one is pushed.
    let recent = try records.notices(of: userID, after: max(0, sequence - 50), atMost: 50)
    return recent.count { $0.kind.isPushed && $0.at > start && $0.at <= end } <= Notice.mostPushedInAnHour
  }

  /// The push addresses of the user's devices that have a full session, with their devices.
  func addressedDevices(of userID: UUID) throws -> [(PushAddress, Device)] {
    guard !policy.pushServices.isEmpty else { return [] }
    let addresses = try records.pushAddresses(of: userID).filter { policy.pushServices.contains($0.service) }
    guard !addresses.isEmpty else { return [] }
    let signedIn = Set(
      try records.sessions(of: userID).filter { $0.isLive(at: now) && $0.scope == .full }.compactMap(\.deviceID))
    return try addresses.compactMap { address in
      guard signedIn.contains(address.deviceID), let device = try records.device(address.deviceID),
        device.removedAt == nil
      else { return nil }
      return (address, device)
    }
  }

  private func send(_ content: PushNotification.Content, to address: PushAddress, until end: Timestamp) {
    // A token that cannot be opened must not fail a sign-in. The app registers again.
    guard let token = try? vault.openText(address.token, for: PushAddresses.place(address.deviceID)) else { return }
    send(PushNotification(address: address, token: token, content: content, expiresAt: end))
  }
}

/// The notices of one user in one transaction that are push notifications as well.
struct PushedNotices: Sendable {
  /// The number of the last one.
  var sequence: Int64
  /// The devices that had a full session when one of them was written, each once.
  private(set) var addresses: [PushAddress] = []

  init(sequence: Int64) { self.sequence = sequence }

  mutating func add(_ address: PushAddress) {
    if !addresses.contains(where: { $0.deviceID == address.deviceID }) { addresses.append(address) }
  }
}

extension Notice {
  /// How long the push notification of a notice may wait for its device.
  static let pushLifetime = Duration.seconds(86400)
  /// The maximum number of notices of one user in an hour that are push notifications as well.
  static let mostPushedInAnHour = 10
}

extension Notice.Kind {
  /// Whether it is a push notification as well, if the operator has turned those on: what a thief of the account would
  /// do.
  var isPushed: Bool {
    switch self {
    case .deviceEnrolled, .deviceRemoved, .methodChanged, .mfaDisabled, .emailConfirmed, .securityKeyAdded,
      .securityKeyRemoved, .securityKeySuspected, .recoveryStarted, .recoveryCompleted, .identityConnected,
      .identityDisconnected, .authenticatorAdded, .authenticatorRemoved, .locked, .mfaEnabled:
      true
    case .unlocked, .sessionRevoked, .trustRevoked, .recoveryCancelled: false
    }
  }
}
