internal import AttestClient
internal import ByteCoding
internal import Foundation
internal import Locking
internal import MFAWire

/// Enrols this device, changes how it signs in, and removes it, so that phone and server agree again after any
/// interruption.
///
/// Each change is recorded before the server hears of it, and carried out again by `recover` until its outcome is known.
/// A new key exists beside the old one until the server has the new one; then exactly one is left. Changes are carried
/// out one after another; of several processes, only one may use a storage.
public actor DeviceEnrolment {
  private let keychain: any KeychainService
  private let storage: any MFAStorageService
  private let session: SessionService
  private let bundleID: String
  private let deviceModel: String
  private let mutex = AsyncMutex()
  /// The link code of the pending enrolment. It is a secret, so no record has it.
  private var linkCode: String?

  /// Creates the enrolment of an app.
  ///
  /// - Parameters:
  ///   - bundleID: The bundle identifier, from which the tags of keys are made.
  ///   - deviceModel: Apple's name of the model, for lists of devices.
  public init(
    keychain: any KeychainService, storage: any MFAStorageService, session: SessionService, bundleID: String,
    deviceModel: String
  ) {
    self.keychain = keychain
    self.storage = storage
    self.session = session
    self.bundleID = bundleID
    self.deviceModel = deviceModel
  }

  // MARK: What is

  /// Carries out a change that was begun earlier, deletes keys that belong to nothing, and returns what is left.
  ///
  /// Call it when the app starts or comes to the front, before a sign-in, and after it. Shows no prompt.
  ///
  /// - Throws: `.storage` and `.security` if the record or the key cannot be read. A server that cannot be reached is
  ///   not an error: the change stays in the record.
  public func recover() async throws(EnrolmentError) -> EnrolmentStatus {
    try await alone { () async throws(EnrolmentError) in
      var record = try load()
      var failure: NetworkError?
      do throws(EnrolmentError) {
        try await finish(&record, isFirstAttempt: false)
      } catch {
        guard case .network(let error) = error else { throw error }
        failure = error
      }
      await deleteUnusedKeys(record)
      return EnrolmentStatus(record: record, key: try await key(record.key), failure: failure)
    }
  }

  /// Forgets the enrolment and deletes its keys, because the server has removed the device.
  ///
  /// - Parameter takingNewID: Whether the device gets another id, because the server has the present one for another app
  ///   instance.
  public func forget(takingNewID: Bool = false) async throws(EnrolmentError) {
    try await alone { () async throws(EnrolmentError) in
      var record = try load()
      if takingNewID { record.deviceID = UUID().uuidString.lowercased() }
      let login = await session.currentLogin
      try await clear(&record, endingSessionOf: login)
    }
  }

  // MARK: Keys

  /// Makes a key beside the present one and signs with it once, which shows the prompt of its protection.
  ///
  /// Give the key to `enroll` or `replaceKey`, or call `discardNewKey`.
  ///
  /// - Throws: `.security` if the key cannot be made or the user declines: no key is left then. `.network` if the outcome
  ///   of an earlier change is not known yet.
  public func makeKey(_ protection: KeyProtection) async throws(EnrolmentError) -> KeyPair {
    try await alone { () async throws(EnrolmentError) in
      var record = try load()
      // A device that enrols again does not wait for the server to hear that it was removed.
      if case .unenroll = record.pendingChange {} else { try await finish(&record, isFirstAttempt: false) }
      await deleteUnusedKeys(record)
      let tag = protection.authMethod == .passcode ? KeyTag.passcode(of: bundleID) : .biometric(of: bundleID)
      let free = record.usedTags.contains(tag) ? tag.successor : tag
      do throws(DeviceSecurityError) {
        let pair = try await keychain.createKey(free, protection: protection)
        _ = try await keychain.sign([UInt8](repeating: 0, count: 32), with: free, reason: "Test the new key")
        return pair
      } catch {
        try? await keychain.deleteKey(free)
        throw .security(error)
      }
    }
  }

  /// Deletes a key that `makeKey` made and no change uses. Keys that cannot be deleted now are deleted by `recover`.
  public func discardNewKey() async {
    try? await alone { () async throws(EnrolmentError) in await deleteUnusedKeys(try load()) }
  }

  // MARK: Changes

  /// Enrols the device with `username`: with a key, or by codes to the number.
  ///
  /// An account that exists needs a session of it, or a link code. The code is not in the record: an enrolment that was
  /// interrupted by the end of the process, before the server had it, needs the code again.
  ///
  /// A device that is not enrolled gets another id if the server has the present one for another app instance, as after
  /// the restoration of a backup on another phone. The refusal is thrown, and the next attempt uses the new id.
  ///
  /// - Parameter linkCode: The code that another device of the account, or an operator, issued for this device.
  /// - Throws: `.network` if the server refuses, which deletes the key, or if the outcome is not known, which `recover`
  ///   finds out; also if an earlier change cannot be finished. Then this one is not begun.
  public func enroll(
    as username: String, phoneNumber: String?, key: KeyPair?, linkCode: String? = nil
  ) async throws(EnrolmentError) {
    try await change(linkCode: linkCode) { _ in
      .enroll(username: username, phoneNumber: phoneNumber, key: key.map(KeyReference.init))
    }
  }

  /// Gives the server `key` in place of the present one, and deletes that one. Needs a session with a recent proof.
  ///
  /// - Throws: as `enroll`. After a refusal the present key is still the one that signs in.
  public func replaceKey(with key: KeyPair) async throws(EnrolmentError) {
    try await change { _ in .replaceKey(KeyReference(key)) }
  }

  /// Lets the device sign in by codes, and deletes its key. Needs no session; the device's session ends.
  public func removeKey() async throws(EnrolmentError) { try await change { _ in .removeKey } }

  /// Replaces the number that receives codes. Needs a session with a recent proof.
  public func change(phoneNumber: String) async throws(EnrolmentError) {
    try await change { _ in .changePhoneNumber(phoneNumber) }
  }

  /// Removes the device from its account and deletes its keys. Needs a session with a recent proof.
  ///
  /// If the outcome is not known, the keys are deleted all the same, and `recover` repeats the call.
  public func unenroll() async throws(EnrolmentError) {
    try await change { .unenroll(username: $0.username ?? "") }
  }

  /// Takes the key of a `replaceKey` for the key of the device, because the server has accepted its signature.
  public func adoptPendingKey() async throws(EnrolmentError) {
    try await alone { () async throws(EnrolmentError) in
      var record = try load()
      guard case .replaceKey(let key) = record.pendingChange else { return }
      try await commit(key, to: &record)
    }
  }

  /// Begins the change that `change` makes of the record, and carries it out.
  ///
  /// An earlier change without an outcome is finished before: its key may be the one that the server has, and a refusal
  /// of the new change deletes all keys that the record does not name.
  private func change(
    linkCode: String? = nil, to change: (MFARecord) -> PendingChange
  ) async throws(EnrolmentError) {
    try await alone { () async throws(EnrolmentError) in
      var record = try load()
      var isFirstAttempt = true
      if let earlier = record.pendingChange {
        switch (earlier, change(record)) {
        // A device that enrols again does not wait for the server to hear that it was removed.
        case (.unenroll, .enroll): break
        // The same removal, which an earlier attempt may have carried out.
        case (.unenroll, .unenroll), (.removeKey, .removeKey): isFirstAttempt = false
        default: try await finish(&record, isFirstAttempt: false)
        }
      }
      record.pendingChange = change(record)
      try save(record)
      self.linkCode = linkCode
      try await finish(&record, isFirstAttempt: isFirstAttempt)
    }
  }

  // MARK: Steps

  /// Carries out the pending change.
  private func finish(_ record: inout MFARecord, isFirstAttempt: Bool) async throws(EnrolmentError) {
    guard let change = record.pendingChange else { return }
    // A user who signs in before the server answers stays signed in.
    let login = await session.currentLogin
    let reference = change.needsPresentKey ? record.key : change.key
    let pair = try await key(reference)
    if reference != nil, pair == nil {
      // Its key was deleted with the passcode, so there is nothing to give to the server any more.
      try await abandon(&record)
      if isFirstAttempt { throw .security(.keyMissing) }
      return
    }
    do throws(NetworkError) {
      try await perform(change, with: pair, record)
    } catch {
      var outcome = change.outcome(after: error, isFirstAttempt: isFirstAttempt)
      // Without a session, the server does not say why it refuses: the device may be gone.
      if outcome == .unknown, case .unenroll = change, await isRemoved(record) { outcome = .removed }
      switch outcome {
      case .removed:
        try await clear(&record, endingSessionOf: login)
        if case .unenroll = change { return }
      case .refused:
        // Another app instance has a device with this id, as where the record came here from the backup of another phone.
        // Without a working enrolment, no attempt with this id can succeed.
        if case .enroll = change, error.refusalCode == "device_exists", try await !canSignIn(record) {
          record.deviceID = UUID().uuidString.lowercased()
        }
        try await abandon(&record)
      case .unknown: if case .unenroll = change { await deleteKeys() }
      }
      throw .network(error)
    }
    switch change {
    case .enroll(let username, let phoneNumber, let key):
      (record.username, record.phoneNumber) = (username, phoneNumber)
      try await commit(key, to: &record)
    case .replaceKey(let key): try await commit(key, to: &record)
    case .removeKey:
      try await commit(nil, to: &record)
      // After an earlier attempt, the present session may have begun since. If the server has ended it, the next
      // operation finds out.
      if isFirstAttempt { await session.end(login) }
    case .changePhoneNumber(let number):
      record.phoneNumber = number
      try await commit(record.key, to: &record)
    case .unenroll: try await clear(&record, endingSessionOf: login)
    }
  }

  /// Whether the record is that of an enrolled device that has its key, if it needs one.
  private func canSignIn(_ record: MFARecord) async throws(EnrolmentError) -> Bool {
    guard record.isEnrolled else { return false }
    guard record.key != nil else { return true }
    return try await key(record.key) != nil
  }

  /// Whether the server says that the device is not enrolled.
  private func isRemoved(_ record: MFARecord) async -> Bool {
    let status = try? await session.call(MFAOperations.deviceStatus, DeviceStatusRequest(deviceId: record.deviceID))
    return status?.enrolled == false
  }

  private func perform(
    _ change: PendingChange, with pair: KeyPair?, _ record: MFARecord
  ) async throws(NetworkError) {
    let username = record.username ?? ""
    switch change {
    case .enroll(let username, let phoneNumber, _): try await enroll(username, phoneNumber, pair, record)
    case .replaceKey(let key):
      guard let pair else { return }
      _ = try await session.call(
        MFAOperations.upgrade,
        UpgradeRequest(
          username: username, deviceId: record.deviceID, publicKey: Base64.encode(pair.publicKey),
          authMethod: key.protection.authMethod.rawValue))
    case .removeKey:
      _ = try await session.call(
        MFAOperations.downgrade, DeviceRequest(username: username, deviceId: record.deviceID))
    case .changePhoneNumber(let number): try await enroll(username, number, pair, record)
    case .unenroll(let username):
      _ = try await session.call(MFAOperations.unenroll, DeviceRequest(username: username, deviceId: record.deviceID))
    }
  }

  private func enroll(
    _ username: String, _ phoneNumber: String?, _ pair: KeyPair?, _ record: MFARecord
  ) async throws(NetworkError) {
    let method = pair == nil ? MFAMethod.smsOTP : .secureEnclave
    _ = try await session.call(
      MFAOperations.enroll,
      EnrollRequest(
        username: username, phoneNumber: phoneNumber, publicKey: pair.map { Base64.encode($0.publicKey) },
        method: method.rawValue, deviceId: record.deviceID, deviceModel: deviceModel,
        authMethod: pair?.protection.authMethod.rawValue, linkCode: linkCode))
  }

  /// Ends the pending change with `key` as the key that the server knows.
  private func commit(_ key: KeyReference?, to record: inout MFARecord) async throws(EnrolmentError) {
    record.method = key == nil ? .smsOTP : .secureEnclave
    record.key = key
    record.pendingChange = nil
    linkCode = nil
    // If this fails, the change is carried out again at the next start, with the same result.
    try save(record)
    await deleteUnusedKeys(record)
  }

  /// Ends the pending change without a result.
  private func abandon(_ record: inout MFARecord) async throws(EnrolmentError) {
    record.pendingChange = nil
    linkCode = nil
    try save(record)
    await deleteUnusedKeys(record)
  }

  /// Returns to the record of a device that is not enrolled.
  private func clear(
    _ record: inout MFARecord, endingSessionOf login: SessionService.Login?
  ) async throws(EnrolmentError) {
    let number = record.phoneNumber
    record = MFARecord(deviceID: record.deviceID)
    record.phoneNumber = number
    try save(record)
    await session.end(login)
    await deleteKeys()
  }

  // MARK: Phone and record

  private func deleteUnusedKeys(_ record: MFARecord) async {
    for tag in KeyTag.all(of: bundleID) where !record.usedTags.contains(tag) { try? await keychain.deleteKey(tag) }
  }

  private func deleteKeys() async {
    for tag in KeyTag.all(of: bundleID) { try? await keychain.deleteKey(tag) }
  }

  private func key(_ reference: KeyReference?) async throws(EnrolmentError) -> KeyPair? {
    guard let reference else { return nil }
    do throws(DeviceSecurityError) { return try await keychain.key(reference.tag) } catch { throw .security(error) }
  }

  private func load() throws(EnrolmentError) -> MFARecord {
    do throws(StorageError) { return try storage.load() } catch { throw .storage(error) }
  }

  private func save(_ record: MFARecord) throws(EnrolmentError) {
    do throws(StorageError) { try storage.save(record) } catch { throw .storage(error) }
  }

  /// Runs `body` while no other change runs.
  private func alone<Value: Sendable>(
    _ body: () async throws(EnrolmentError) -> Value
  ) async throws(EnrolmentError) -> Value {
    guard await mutex.enter() else { throw .network(.gate(.cancelled)) }
    let result: Result<Value, EnrolmentError>
    do throws(EnrolmentError) { result = .success(try await body()) } catch { result = .failure(error) }
    await mutex.leave()
    return try result.get()
  }
}

extension PendingChange {
  /// Whether the server is told of the present key again.
  fileprivate var needsPresentKey: Bool { if case .changePhoneNumber = self { true } else { false } }

  /// What an attempt without success means for the change.
  fileprivate enum Outcome {
    /// The change may have been carried out, or may still be: it stays pending.
    case unknown
    /// The server does not carry it out, and has not done so earlier.
    case refused
    /// The server has removed the device.
    case removed
  }

  /// - Parameter isFirstAttempt: Whether no earlier attempt may have succeeded. A refusal for want of a session says
  ///   nothing about an earlier attempt, unless that attempt would have made the request succeed without one.
  fileprivate func outcome(after error: NetworkError, isFirstAttempt: Bool) -> Outcome {
    if error.refusalCode == "device_not_enrolled" { return .removed }
    if error.mayHaveBeenCarriedOut { return .unknown }
    guard case .refused(let refusal) = error else {
      // The request has not reached the server. The user wants the device removed in any case.
      if case .unenroll = self { return .unknown }
      return isFirstAttempt ? .refused : .unknown
    }
    if isFirstAttempt { return .refused }
    if refusal.retryAfter != nil || refusal.code == "account_locked" { return .unknown }
    switch self {
    case .replaceKey, .unenroll: return error.needsSignIn ? .unknown : .refused
    case .enroll, .removeKey, .changePhoneNumber: return .refused
    }
  }
}

/// What the app and the phone have, after `DeviceEnrolment.recover`.
public struct EnrolmentStatus: Sendable, Hashable {
  /// What the app remembers.
  public let record: MFARecord
  /// The key of the device; `nil` if it has none, or if it was deleted with the passcode.
  public let key: KeyPair?
  /// Why the pending change of the record could not be carried out now; `nil` without one.
  public let failure: NetworkError?

  /// Whether the key that the server knows has gone.
  public var hasLostKey: Bool { record.key != nil && key == nil }
}
