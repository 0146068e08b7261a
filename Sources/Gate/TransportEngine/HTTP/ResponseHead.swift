internal import Transport

/// The head of an upstream's response that is valid under RFC 9112, without white space before colons.
struct ResponseHead: Sendable, Hashable {
  /// 100 to 599.
  let status: Int
  /// Free text, often empty and never used. Invalid UTF-8 becomes U+FFFD.
  let reason: String
  /// Whether the upstream speaks HTTP/1.0 and so closes the connection after its response.
  let isVersion10: Bool
  let headers: HeaderFields
  /// The options of `Connection`, in lowercase.
  let connectionOptions: [String]
  /// How the end of the body is determined, if the request was neither HEAD nor CONNECT.
  let framing: BodyFraming

  /// Whether the upstream accepts no further request on this connection.
  var wantsClose: Bool { isVersion10 || connectionOptions.contains("close") || framing == .untilClose }
}

/// The result of parsing the front of an upstream's bytes.
enum ResponseParse: Sendable, Hashable {
  /// The bytes are the beginning of a head.
  case incomplete
  /// A head of `length` bytes. It may be an interim response (1xx), which another head follows.
  case head(ResponseHead, length: Int)
  /// The bytes are not a valid head, whatever follows.
  case fault(HeadError)
}

extension ResponseHead {
  /// Parses the head at the front of `bytes`. Like `RequestHead.parse`, the result depends only on the bytes.
  static func parse(_ bytes: UnsafeBufferPointer<UInt8>, limits: HeadLimits = .response()) -> ResponseParse {
    var scanner = HeadScanner(bytes, limits: limits)
    do throws(HeadError) {
      guard let extent = try scanner.response() else { return .incomplete }
      return .head(try ResponseHead(bytes, extent: extent), length: extent.length)
    } catch {
      return .fault(error)
    }
  }

  private init(_ bytes: UnsafeBufferPointer<UInt8>, extent: HeadScanner.Extent) throws(HeadError) {
    // `HTTP/1.x NNN reason CRLF`: the scanner has checked that the first two parts have these widths. The space before
    // the reason may be missing.
    let line = bytes[..<extent.fields.range.lowerBound].dropLast(2)
    isVersion10 = line.dropFirst(7).first == UInt8(ascii: "0")
    status = line.dropFirst(9).prefix(3).reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    reason = String(decoding: line.dropFirst(13), as: UTF8.self)
    // Values that are not UTF-8 are forwarded unchanged: RFC 9110 section 5.5 asks recipients to treat them as opaque.
    headers = HeaderFields(extent.fields, in: bytes)
    connectionOptions = try headers.connectionOptions()
    framing = try Self.framing(status: status, isVersion10: isVersion10, headers: headers)
  }

  /// Determines the framing by RFC 9112 section 6.3.
  private static func framing(
    status: Int, isVersion10: Bool, headers: HeaderFields
  ) throws(HeadError) -> BodyFraming {
    if status < 200 || status == 204 || status == 304 { return .none }
    let (contentLength, isChunked) = try headers.declaredFraming()
    if isChunked {
      // A transfer coding in HTTP/1.0 indicates an unreliable framing (section 6.1).
      if isVersion10 { throw .transferEncoding }
      return .chunked
    }
    return contentLength.map(BodyFraming.length) ?? .untilClose
  }
}
