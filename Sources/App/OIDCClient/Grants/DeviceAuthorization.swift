public import Foundation
internal import Wire

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
  /// The longest interval that more requests to slow down can lead to, in seconds.
  static let longestInterval = 3600

  private static let name = "the device authorization endpoint's answer"

  /// Reads the answer of the endpoint. Google calls the addresses `verification_url`.
  ///
  /// - Throws: `.malformed`.
  init(json: [UInt8], at now: Date) throws(OIDCError) {
    let document: Document
    do { document = try ProviderJSON.decode(Document.self, from: json) } catch {
      throw .malformed("\(Self.name) is not a JSON object")
    }
    deviceCode = try document.deviceCode.required(in: Self.name)
    userCode = try document.userCode.required(in: Self.name)
    // Bytes first: a character may have any number of combining marks.
    guard userCode.utf8.count <= 256, userCode.count <= 64,
      !userCode.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else { throw .malformed("\(Self.name): user_code is \(ShownValue.quoted(userCode)), not a text of 64 characters") }
    verificationURI = try document.verificationURI.required(in: Self.name)
    completeURI = try document.completeURI.usable(in: Self.name)
    let lifetime = try document.expiresIn.required(in: Self.name)
    expiresAt = now.addingTimeInterval(TimeInterval(min(max(lifetime, 0), 3600)))
    interval = min(max(try document.interval.usable(in: Self.name) ?? Self.assumedInterval, 1), 60)
  }

  private struct Document: Decodable {
    let deviceCode: Member<String>
    let userCode: Member<String>
    let verificationURI: Member<String>
    let completeURI: Member<String>
    let expiresIn: Member<Int>
    let interval: Member<Int>

    init(from decoder: any Decoder) throws {
      let members = try ProviderMembers(from: decoder)
      deviceCode = members.text("device_code", isSecret: true)
      userCode = members.text("user_code")
      verificationURI = Self.address("verification_uri", or: "verification_url", members)
      completeURI = Self.address("verification_uri_complete", or: "verification_url_complete", members)
      expiresIn = Self.seconds("expires_in", members)
      interval = Self.seconds("interval", members)
    }

    /// An address that a terminal shows: https, or http on loopback.
    private static func address(_ name: String, or other: String, _ members: ProviderMembers) -> Member<String> {
      let usual = members.text(name)
      let isAbsent = usual.value == nil && usual.fault == nil
      return (isAbsent && members.has(other) ? members.text(other) : usual).map {
        EndpointRules.url($0)?.isConfidential == true ? $0 : nil
      } otherwise: {
        "\(ShownValue.quoted($0)), not an https URL"
      }
    }

    /// Whole seconds.
    private static func seconds(_ name: String, _ members: ProviderMembers) -> Member<Int> {
      members.number(name).map {
        Int(exactly: $0.rounded(.down))
      } otherwise: {
        "\(ShownValue.text($0)), not a number of seconds"
      }
    }
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
    case .refused(let refusal) where refusal.error == "slow_down": .wait(min(interval, longestInterval) + slowDown)
    case .refused(let refusal) where refusal.error == "expired_token": .stop(.deviceCodeExpired)
    // Nothing was spent by a question that was lost: the answer to the next one is the same (section 3.5).
    // A pause that `slow_down` made longer holds for all later questions.
    // 408 is the server's or a proxy's word for a request that it did not receive in time (RFC 9110, section 15.5.9).
    case .transport(.unreachable), .transport(.lost), .status(408, _, _): .wait(max(interval, min(interval * 2, 60)))
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
