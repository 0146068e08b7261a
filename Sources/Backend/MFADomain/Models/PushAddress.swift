public import ByteCoding
public import Foundation

/// The address of an app instance at the push service of its platform. A device has at most one.
public struct PushAddress: Sendable, Hashable {
  /// The push service of a platform.
  public enum Service: String, Sendable, Hashable, CaseIterable {
    /// Apple Push Notification service.
    case apns
    /// Firebase Cloud Messaging.
    case fcm

    /// The service of a platform.
    public init(of platform: GateIdentity.Platform) {
      switch platform {
      case .apple: self = .apns
      case .android: self = .fcm
      }
    }
  }

  public let deviceID: DeviceID
  public let userID: UUID
  public let service: Service
  /// The name of the app, as the gate reports it: for Apple's apps the team id, a full stop and the bundle id.
  public let app: String
  /// Whether the app instance is of the production environment.
  public let isProduction: Bool
  /// The token that the service gave to the app instance, as the vault sealed it.
  public let token: Sealed
  /// The keyed hash of service and token. No two addresses have the same.
  public let tokenHash: [UInt8]
  /// The language tag of the app instance; `nil` if it named none.
  public let language: String?
  /// When the app instance last reported the token.
  public let registeredAt: Timestamp

  public init(
    deviceID: DeviceID, userID: UUID, service: Service, app: String, isProduction: Bool, token: Sealed,
    tokenHash: [UInt8], language: String?, registeredAt: Timestamp
  ) {
    self.deviceID = deviceID
    self.userID = userID
    self.service = service
    self.app = app
    self.isProduction = isProduction
    self.token = token
    self.tokenHash = tokenHash
    self.language = language
    self.registeredAt = registeredAt
  }
}

/// The token of an app instance at a push service.
public struct PushToken: Sendable, Hashable {
  /// The sizes of a device token of APNs, in hexadecimal digits.
  public static let digits = 64...200
  /// The sizes of a registration token of FCM, in bytes.
  public static let bytes = 20...1024

  /// For APNs in lower case.
  public let text: String

  /// Validates the text that a client sent.
  public init(_ text: String, for service: PushAddress.Service) throws(InvalidValue) {
    switch service {
    case .apns:
      guard Self.digits.contains(text.utf8.count), Hex.decode(text) != nil else {
        throw InvalidValue(
          field: "token", rule: "is the device token of APNs: an even number of hexadecimal digits, 64 to 200")
      }
      self.text = text.lowercased()
    case .fcm:
      guard Self.bytes.contains(text.utf8.count), text.utf8.allSatisfy(Self.isOfRegistrationToken) else {
        throw InvalidValue(
          field: "token", rule: "is the registration token of FCM: 20 to 1024 letters, digits and -_:.=")
      }
      self.text = text
    }
  }

  /// The token as a store kept it.
  init(kept text: String) { self.text = text }

  private static func isOfRegistrationToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "-_:.=".utf8.contains(byte)
    }
  }
}

extension PushAddress {
  /// The bundle id of Apple's app: its name without the team id; `nil` if the name is not of that form.
  public var bundleID: String? { Self.bundleID(of: app) }

  static func bundleID(of app: String) -> String? {
    guard let dot = app.firstIndex(of: "."), dot > app.startIndex else { return nil }
    let id = app[app.index(after: dot)...]
    // It becomes a header field.
    guard (1...255).contains(id.utf8.count), id.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
    return String(id)
  }
}
