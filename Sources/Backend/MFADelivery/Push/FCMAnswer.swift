internal import Foundation
internal import Wire

/// The answer of Firebase Cloud Messaging to one message: the error model of Google's APIs.
struct FCMAnswer: Sendable, Hashable {
  let status: Int
  /// The code of FCM, or else the status of Google's API; `nil` if there is none.
  let reason: String?
  /// Whether the registration token is what the request is refused for.
  let isAboutToken: Bool
  private let retryAfter: Duration?

  /// The failure that a newer access token may mend.
  static let expiredToken = PushFailure(.configuration, "status 401: the access token is refused")

  private struct Body: Decodable {
    struct Problem: Decodable {
      let message: String?
      let status: String?
      let details: [Detail]?
    }

    struct Detail: Decodable {
      let errorCode: String?
      let fieldViolations: [Violation]?
    }

    struct Violation: Decodable {
      let field: String?
    }

    let error: Problem
  }

  init(_ response: HTTPResponse) {
    status = response.status
    retryAfter = response.retryAfter
    let problem = (try? JSONDecoder().decode(Body.self, from: Data(response.body)))?.error
    let details = (problem?.details ?? []).prefix(16)
    reason = HTTPResponse.word(details.compactMap(\.errorCode).first ?? problem?.status)
    isAboutToken =
      details.contains { $0.fieldViolations?.prefix(16).contains { $0.field == "message.token" } == true }
      || problem?.message?.contains("not a valid FCM registration token") == true
  }

  /// - Throws: unless Google has accepted the message.
  func judge() throws(PushFailure) {
    let text = "status \(status)" + (reason.map { " \($0)" } ?? "")
    func failure(_ kind: PushFailure.Kind) -> PushFailure { PushFailure(kind, text) }
    switch (status, reason) {
    case (200, _): return
    case (400, _) where isAboutToken: throw failure(.unregistered(since: nil))
    case (401, "UNAUTHENTICATED"), (401, nil): throw Self.expiredToken
    case (404, "UNREGISTERED"): throw failure(.unregistered(since: nil))
    // A token of another project. The file of a wrong project must not cost all devices their addresses.
    case (403, "SENDER_ID_MISMATCH"): throw failure(.refused)
    case (401, _), (403, _), (404, _): throw failure(.configuration)
    // The quota of the project or of one device.
    case (429, _): throw failure(.throttled(after: retryAfter))
    // 408: the request did not arrive in time, and nothing was done with it (RFC 9110, section 15.5.9).
    case (408, _), (500..., _): throw failure(.temporary(after: retryAfter, isOfService: true))
    default: throw failure(.refused)
    }
  }
}
