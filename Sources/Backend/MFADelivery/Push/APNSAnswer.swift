internal import ByteCoding
internal import Foundation
internal import Wire

/// The answer of Apple Push Notification service to one notification.
struct APNSAnswer: Sendable, Hashable {
  let status: Int
  /// Apple's word for the reason; `nil` if there is none.
  let reason: String?
  /// Since when the token is not valid, with status 410.
  let unregisteredSince: Timestamp?
  private let retryAfter: Duration?

  /// The failure that a newer provider token may mend.
  static let expiredToken = PushFailure(
    .configuration, "ExpiredProviderToken: compare the clock of this machine with the time")

  private struct Body: Decodable {
    let reason: String?
    /// In milliseconds.
    let timestamp: Int64?
  }

  init(_ response: HTTPResponse) {
    status = response.status
    retryAfter = response.retryAfter
    let body = try? JSONDecoder().decode(Body.self, from: Data(response.body))
    reason = HTTPResponse.word(body?.reason)
    unregisteredSince = status == 410 ? body?.timestamp.map(Timestamp.init(milliseconds:)) : nil
  }

  /// - Throws: unless Apple has accepted the notification.
  func judge() throws(PushFailure) {
    let text = "status \(status)" + (reason.map { " \($0)" } ?? "")
    func failure(_ kind: PushFailure.Kind) -> PushFailure { PushFailure(kind, text) }
    switch (status, reason) {
    case (200, _): return
    case (400, "BadDeviceToken"): throw failure(.unregistered(since: nil))
    // The name of a wrong app must not cost all devices their addresses.
    case (400, "DeviceTokenNotForTopic"): throw failure(.refused)
    case (403, "ExpiredProviderToken"): throw Self.expiredToken
    case (403, _): throw failure(.configuration)
    case (410, _): throw failure(.unregistered(since: unregisteredSince))
    // Too many for this device. The other reason is `TooManyProviderTokenUpdates`.
    case (429, "TooManyRequests"): throw failure(.temporary(after: retryAfter, isOfService: false))
    // 408: the request did not arrive in time, and nothing was done with it (RFC 9110, section 15.5.9).
    case (408, _), (429, _), (500..., _): throw failure(.temporary(after: retryAfter, isOfService: true))
    default: throw failure(.refused)
    }
  }
}
