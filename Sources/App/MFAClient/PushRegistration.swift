internal import ByteCoding
internal import MFAWire

extension SessionService {
  /// Registers this device for the push notifications of Apple, for a sign-in that waits for approval.
  ///
  /// Call it at every start of the app with a session, and when the token changes: the server removes the address when the
  /// session ends, and when Apple does not know it.
  ///
  /// - Parameter deviceToken: What `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)` gets.
  /// - Returns: Whether the server sends push notifications to this device.
  @discardableResult
  public func registerPush(deviceToken: some Collection<UInt8>) async throws(NetworkError) -> Bool {
    try await registerPush(token: Hex.encode(deviceToken))
  }

  /// Registers this device by the token that its push service gave to the app: for Firebase Cloud Messaging the
  /// registration token, for Apple's service the device token in hexadecimal digits.
  ///
  /// - Returns: Whether the server sends push notifications to this device.
  @discardableResult
  public func registerPush(token: String) async throws(NetworkError) -> Bool {
    try await call(MFAOperations.registerPush, PushAddressRequest(token: token)).active
  }

  /// Stops the push notifications to this device, for a user who turns them off. The end of the session does it, too.
  public func unregisterPush() async throws(NetworkError) {
    _ = try await call(MFAOperations.unregisterPush, EmptyRequest())
  }
}
