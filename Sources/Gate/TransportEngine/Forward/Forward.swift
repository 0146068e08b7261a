internal import Transport

/// A request that is being forwarded to an upstream, and its response.
final class Forward {
  let plan: any ForwardPlan
  /// The request head for the upstream, including the empty line.
  let head: [UInt8]
  /// The client's body.
  var request: BodyPipe
  /// The upstream's body; `nil` until its final head has arrived.
  var response: BodyPipe?
  var status: Int?
  let isForHEAD: Bool
  /// Whether the request may be sent again if a pooled connection turns out to be dead: its method is idempotent (RFC
  /// 9110 section 9.2.2) and it has no body.
  let isRepeatable: Bool
  /// Whether the request changes nothing at the upstream (RFC 9110 section 9.2.1), so that another server may get it after
  /// it was sent to one.
  let isSafe: Bool
  /// Whether the connection carried another request before.
  var isOnKeptConnection = false
  /// Whether the upstream accepts another request on the connection.
  var keepsConnection = false
  /// How many interim responses the upstream has sent.
  var interimResponses = 0
  /// Far more than any server sends (RFC 9110 section 15.2); each one renews the time that it has.
  static let mostInterimResponses = 64
  /// Whether `head` has been sent to the upstream.
  var isSent = false
  private let startedAt: Milliseconds
  private var isFinished = false

  /// - Parameter head: From the request line to the last field, without the empty line. The fields that
  ///   frame the body are added here.
  /// - Throws: `BodyError.tooLarge` if the declared body is over the limit.
  init(
    _ plan: any ForwardPlan, head: [UInt8], of request: RequestHead, now: Milliseconds
  ) throws(BodyError) {
    let body = try BodyPipe(request.framing, limit: plan.limits.maxBody, extras: .refused)
    self.plan = plan
    self.request = body
    isForHEAD = request.method == "HEAD"
    isSafe = ["GET", "HEAD", "OPTIONS"].contains(request.method) && body.isComplete
    isRepeatable =
      ["GET", "HEAD", "OPTIONS", "DELETE", "PUT"].contains(request.method) && body.isComplete
    let framing =
      switch request.framing {
      case .length(let length): "Content-Length: \(length)\r\n\r\n"
      case .chunked: "Transfer-Encoding: chunked\r\n\r\n"
      case .none, .untilClose: "\r\n"
      }
    self.head = head + framing.utf8
    startedAt = now
  }

  var isAnswered: Bool { request.isComplete && response?.isComplete == true }

  /// Reports the summary to the plan, once.
  func finish(now: Milliseconds) {
    guard !isFinished else { return }
    isFinished = true
    plan.finished(
      ForwardSummary(
        status: status, isComplete: response?.isComplete ?? false, bytesFromClient: UInt64(request.count),
        bytesFromUpstream: UInt64(response?.count ?? 0), duration: .milliseconds(now - startedAt)))
  }
}
