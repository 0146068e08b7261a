internal import NIOCore
internal import NIOHTTP1

/// The refusal of an upgrade. It has the same form as a REST refusal, and the connection is closed after it.
struct UpgradeRefusal: Error {
  let refusal: PublicRefusal
  let requestID: String
  /// Whether the request was HEAD: its response has no body.
  let isHead: Bool

  /// Whether the refusal names the only version of WebSocket that is served (RFC 6455 section 4.4).
  var namesVersion = false

  /// Writes the refusal and closes the connection.
  func answer(on channel: any Channel) async throws {
    let body = refusal.body(requestID: requestID)
    var fields: HTTPHeaders = [
      "Content-Type": "application/json", "Content-Length": String(body.count), "Cache-Control": "no-store",
      "X-Request-Id": requestID, "Connection": "close",
    ]
    if namesVersion { fields.add(name: "Sec-WebSocket-Version", value: "13") }
    for field in refusal.fields { fields.add(name: field.name, value: field.value) }
    let head = HTTPResponseHead(
      version: .http1_1, status: HTTPResponseStatus(statusCode: refusal.code.status), headers: fields)
    channel.write(HTTPServerResponsePart.head(head), promise: nil)
    if !isHead { channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil) }
    try await channel.writeAndFlush(HTTPServerResponsePart.end(nil))
    try await channel.close()
  }
}
