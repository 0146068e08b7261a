internal import Transport

/// The head of a request that is valid under RFC 9112; nothing in it was repaired.
struct RequestHead: Sendable, Hashable {
  /// As sent, case preserved.
  let method: String
  /// As sent.
  let target: String
  /// The path in its normal form (see `RequestTarget`).
  let path: String
  /// As sent; `nil` if the target has no question mark.
  let query: String?
  let headers: HeaderFields
  /// The value of `Content-Length`; `nil` without one. Never set together with `isChunked`.
  let contentLength: Int?
  let isChunked: Bool
  /// The options of `Connection`, in lowercase.
  let connectionOptions: [String]
  /// Whether the client waits for 100 Continue before it sends its body (RFC 9110 section 10.1.1).
  let expectsContinue: Bool
  let upgrade: Upgrade

  /// Whether the client will not use the connection again.
  var wantsClose: Bool { connectionOptions.contains("close") }

  /// How the end of the body is determined.
  var framing: BodyFraming {
    if isChunked { return .chunked }
    return contentLength.map(BodyFraming.length) ?? .none
  }
}

/// The result of parsing the front of a connection's input.
enum HeadParse: Sendable, Hashable {
  /// The bytes are the beginning of a head.
  case incomplete
  /// A head of `length` bytes.
  case head(RequestHead, length: Int)
  /// The bytes are not a valid head, whatever follows.
  case fault(RequestError)
}

extension RequestHead {
  /// Parses the head at the front of `bytes`.
  ///
  /// The result depends only on the bytes, not on how they arrive: if a prefix has a fault, every longer
  /// prefix has the same fault.
  static func parse(_ bytes: UnsafeBufferPointer<UInt8>, limits: HeadLimits = .standard) -> HeadParse {
    var scanner = HeadScanner(bytes, limits: limits)
    do throws(HeadError) {
      guard let extent = try scanner.request() else { return .incomplete }
      return .head(try RequestHead(bytes, extent: extent), length: extent.length)
    } catch {
      return .fault(error.requestError)
    }
  }

  private init(_ bytes: UnsafeBufferPointer<UInt8>, extent: HeadScanner.Extent) throws(HeadError) {
    let line = bytes[..<extent.fields.range.lowerBound]
    let method = line.prefix { $0 != .space }
    let target = try RequestTarget(scanned: line[method.endIndex...].dropFirst().prefix { $0 != .space })
    self.method = String(decoding: method, as: UTF8.self)
    self.target = target.text
    path = target.path
    query = target.query
    // Two readers could interpret a value that is not UTF-8 differently.
    if extent.fields.hasInvalidText { throw .fieldEncoding }
    headers = HeaderFields(extent.fields, in: bytes)
    try headers.requireHost()
    (contentLength, isChunked) = try headers.declaredFraming()
    connectionOptions = try headers.connectionOptions()
    let hasBody = isChunked || contentLength ?? 0 > 0
    expectsContinue = try Self.expectation(in: headers) && hasBody
    upgrade = Upgrade(method: self.method, headers: headers, options: connectionOptions, hasBody: hasBody)
  }

  private static func expectation(in headers: HeaderFields) throws(HeadError) -> Bool {
    switch headers.only("Expect") {
    case .absent: return false
    case .once(let value) where HeaderFields.isSame(value, "100-continue"): return true
    case .once, .repeated: throw .expectation
    }
  }
}
