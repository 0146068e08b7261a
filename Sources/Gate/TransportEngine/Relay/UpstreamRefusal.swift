internal import Transport

/// The upstream's response other than 101, while its body arrives.
struct UpstreamRefusal {
  let head: ResponseHead
  var body: BodyReader

  /// The size of the longest body in bytes. It is held in memory until it is complete, and many clients may be refused at
  /// a time.
  static let maxBody = 64 << 10

  /// The response for the client.
  var response: Response {
    Response(status: head.status, headers: head.endToEndFields, body: body.body, closes: true)
  }

  /// The response for the client if the body is longer than `maxBody`: without it, because the client decides by the
  /// status whether to try again.
  static func withoutBody(_ head: ResponseHead) -> Response {
    let fields = head.endToEndFields.filter { !ofBody.contains($0.name) }
    return Response(status: head.status, headers: fields, closes: true)
  }

  /// The fields that describe a body (RFC 9110 sections 8 and 14.4, RFC 9530).
  private static let ofBody = FieldNameSet(
    names: ["etag", "last-modified", "repr-digest", "trailer"], prefixes: ["content-"])
}
