internal import Transport

/// A request on its way to an upstream, and the answer on its way back.
final class Forward {
  let order: any ForwardOrder
  /// What the upstream gets in front of the body.
  let head: [UInt8]
  /// The client's body.
  var request: BodyPipe
  /// The upstream's, once its final head has come.
  var response: BodyPipe?
  var status: Int?
  let isForHEAD: Bool
  /// Whether the request may be sent once more when a connection that was kept turns out to be dead: it changes nothing
  /// (RFC 9110 section 9.2.2) and has no body.
  let isRepeatable: Bool
  /// The connection had carried another request before.
  var isOnKeptConnection = false
  /// The upstream takes another request on the connection.
  var keepsConnection = false
  /// The upstream has been sent `head`.
  var isSent = false
  private let startedAt: Milliseconds
  private var isFinished = false

  /// - Parameter head: from request line to the last field, without the empty line; the fields that frame the body are
  ///   added here.
  init(
    _ order: any ForwardOrder, head: [UInt8], of request: RequestHead, now: Milliseconds
  ) throws(BodyFault) {
    let body = try BodyPipe(request.framing, limit: order.limits.maxBody, extras: .refused)
    self.order = order
    self.request = body
    isForHEAD = request.method == "HEAD"
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

  /// Tells the order, once.
  func finish(now: Milliseconds) {
    guard !isFinished else { return }
    isFinished = true
    order.finished(
      ForwardSummary(
        status: status, isComplete: response?.isComplete ?? false, bytesFromClient: UInt64(request.count),
        bytesFromUpstream: UInt64(response?.count ?? 0), duration: .milliseconds(now - startedAt)))
  }
}
