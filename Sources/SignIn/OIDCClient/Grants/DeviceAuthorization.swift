public import Foundation
internal import HTTPExchange

/// A device grant under way (RFC 8628, section 3.2): the person confirms a code in a browser on any device.
public struct DeviceAuthorization: Sendable, Hashable {
  /// What the person types, or compares.
  public let userCode: String
  /// Where the person types it.
  public let verificationURI: String
  /// The same with the code in it, for a QR code; `nil` if the provider gives none.
  public let completeURI: String?
  /// When the code expires.
  public let expiresAt: Date
  /// The time between two questions, in seconds, at the beginning.
  public let interval: Int
  let deviceCode: String

  /// The interval where the provider names none (section 3.2).
  static let assumedInterval = 5
  /// What `slow_down` adds to the interval (section 3.5).
  static let slowDown = 5

  /// Reads the answer of the endpoint.
  ///
  /// - Throws: `.malformed`.
  init(json: [UInt8], at now: Date) throws(OIDCError) {
    struct Document: Decodable {
      let device_code: String
      let user_code: String
      let verification_uri: String
      let verification_uri_complete: String?
      let expires_in: Int
      let interval: Int?
    }
    guard let document = try? JSONDecoder().decode(Document.self, from: Data(json)),
      // They are shown on terminals.
      [document.verification_uri, document.verification_uri_complete ?? document.verification_uri].allSatisfy({
        EndpointRules.url($0)?.isConfidential == true
      }),
      (1...64).contains(document.user_code.count),
      !document.user_code.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }),
      !document.device_code.isEmpty
    else { throw .malformed("the answer of the device authorization endpoint") }
    deviceCode = document.device_code
    userCode = document.user_code
    verificationURI = document.verification_uri
    completeURI = document.verification_uri_complete
    expiresAt = now.addingTimeInterval(TimeInterval(min(max(document.expires_in, 0), 3600)))
    interval = min(max(document.interval ?? Self.assumedInterval, 1), 60)
  }

  /// What to do after an answer of the token endpoint that is no token.
  enum Step: Sendable, Hashable {
    /// Ask again after so many seconds.
    case wait(Int)
    /// Give up.
    case stop(OIDCError)
  }

  /// The step after `error`, with `interval` seconds between the last two questions (section 3.5).
  static func step(after error: OIDCError, interval: Int) -> Step {
    switch error {
    case .refused(let refusal) where refusal.error == "authorization_pending": .wait(interval)
    case .refused(let refusal) where refusal.error == "slow_down": .wait(interval + slowDown)
    case .refused(let refusal) where refusal.error == "expired_token": .stop(.deviceCodeExpired)
    // Nothing was spent by a question that was lost: the answer to the next one is the same (section 3.5).
    case .transport(.unreachable), .transport(.lost): .wait(min(interval * 2, 60))
    case .status(let status, _, let pause) where status == 429 || status >= 500: .wait(max(interval, pause ?? 0))
    default: .stop(error)
    }
  }
}

extension DeviceAuthorization: CustomStringConvertible, CustomReflectable {
  /// The user code, which the person sees anyway.
  public var description: String { userCode }
  /// No members: the device code stays out of logs.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}
