public import ByteCoding
internal import Foundation
public import MFADomain

extension PushNotification {
  /// A device token of APNs.
  public static let deviceToken = String(repeating: "0a1b2c3d", count: 8)
  /// A registration token of FCM.
  public static let registrationToken = "fcm-Token_1:" + String(repeating: "aZ09-_", count: 20)

  /// A notification to a device of a made-up account.
  public static func sample(
    _ service: PushAddress.Service = .apns, _ content: Content? = nil, app: String = "AAABBBCCC1.com.example.app",
    isProduction: Bool = true, device: Int = 1, language: String? = nil, lifetime: Duration = .seconds(120),
    at now: Timestamp
  ) throws -> PushNotification {
    let token = service == .apns ? deviceToken : registrationToken
    return PushNotification(
      address: PushAddress(
        deviceID: try DeviceID("device-\(device)"), userID: UUID(), service: service, app: app,
        isProduction: isProduction,
        token: Sealed(bytes: []), tokenHash: Array("\(device)\(token)".utf8.prefix(32)), language: language,
        registeredAt: now),
      token: token, content: content ?? .signIn(push: UUID()), expiresAt: now.advanced(by: lifetime))
  }
}
