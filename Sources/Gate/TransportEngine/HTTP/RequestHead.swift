internal import Transport

/// The head of a request that is valid under RFC 9112, in the form that the next reader gets: the target is in origin
/// form, and the lists of a WebSocket's opening handshake have no empty elements.
struct RequestHead: Sendable, Hashable {
  /// As sent, case preserved.
  let method: String
  /// As sent, without the scheme and the authority of an absolute target.
  let target: String
  /// The path in its normal form (see `RequestTarget`).
  let path: String
  /// As sent; `nil` if the target has no question mark.
  let query: String?
  let headers: HeaderFields
  /// Whether a value is not UTF-8. No such field has a meaning for the engine.
  let hasOpaqueValues: Bool
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

  /// Whether the client asked for an upgrade, to whichever protocol: what it sends next may not be a request.
  var asksForUpgrade: Bool { connectionOptions.contains("upgrade") && headers.contains("Upgrade") }

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
  ///
  /// - Parameter unread: The beginning of paths whose rest is not checked; `nil` for none.
  static func parse(
    _ bytes: UnsafeBufferPointer<UInt8>, limits: HeadLimits = .standard, unread: StaticString? = nil
  ) -> HeadParse {
    var scanner = HeadScanner(bytes, limits: limits, unread: unread)
    do throws(HeadError) {
      guard let extent = try scanner.request() else { return .incomplete }
      return .head(try RequestHead(bytes, extent: extent, unread: unread), length: extent.length)
    } catch {
      return .fault(error.requestError)
    }
  }

  /// Parses the head at the front of `bytes`, of which fewer were parsed before: it takes time in proportion to the
  /// bytes of the head, however many pieces it has.
  ///
  /// - Parameter fields: What the calls for fewer bytes found; `nil` for the first call.
  static func parse(
    _ bytes: UnsafeBufferPointer<UInt8>, continuing fields: inout ScannedFields?, limits: HeadLimits,
    unread: StaticString?
  ) -> HeadParse {
    var scanner = HeadScanner(bytes, limits: limits, unread: unread)
    do throws(HeadError) {
      guard let extent = try scanner.request(continuing: &fields) else { return .incomplete }
      return .head(try RequestHead(bytes, extent: extent, unread: unread), length: extent.length)
    } catch {
      return .fault(error.requestError)
    }
  }

  private init(
    _ bytes: UnsafeBufferPointer<UInt8>, extent: HeadScanner.Extent, unread: StaticString?
  ) throws(HeadError) {
    let line = bytes[..<extent.fields.range.lowerBound]
    let method = line.prefix { $0 != .space }
    let sent = line[method.endIndex...].dropFirst().prefix { $0 != .space }
    let (authority, target) = try Self.target(sent, unread: unread)
    self.method = String(decoding: method, as: UTF8.self)
    self.target = target.text
    path = target.path
    query = target.query
    var headers = HeaderFields(extent.fields, in: bytes)
    hasOpaqueValues = extent.fields.hasInvalidText
    // Two readers could interpret such a value differently.
    if hasOpaqueValues, headers.hasOpaqueValue(in: Self.ownFields) { throw .fieldEncoding }
    try headers.requireHost()
    if let authority { try headers.requireHost(sameAs: authority) }
    (contentLength, isChunked) = try headers.declaredFraming()
    connectionOptions = try headers.connectionOptions()
    let hasBody = isChunked || contentLength ?? 0 > 0
    expectsContinue = try Self.expectation(in: headers) && hasBody
    upgrade = Upgrade(method: self.method, headers: headers, options: connectionOptions, hasBody: hasBody)
    if case .webSocket = upgrade, headers.hasEmptyHandshakeElement {
      headers = headers.withoutEmptyHandshakeElements()
    }
    self.headers = headers
  }

  /// The fields whose values the engine reads.
  private static let ownFields = FieldNameSet(
    names: ["Host", "Connection", "Upgrade", "Content-Length", "Transfer-Encoding", "Expect", "Origin"],
    prefixes: ["Sec-WebSocket-"])

  /// Returns the target in origin form, and the authority of an absolute one.
  private static func target(
    _ sent: UnsafeBufferPointer<UInt8>.SubSequence, unread: StaticString?
  ) throws(HeadError) -> (authority: UnsafeBufferPointer<UInt8>?, target: RequestTarget) {
    if sent.first == .slash { return (nil, try RequestTarget(scanned: sent, unread: unread)) }
    let (authority, target) = try RequestTarget.absolute(sent, unread: unread)
    return (authority, target)
  }

  /// Returns the path of a request whose head has a fault: in normal form, or as it was sent if the fault is in it.
  /// Returns `nil` if it is not certain.
  ///
  /// - Parameters:
  ///   - limits: As in `parse`.
  ///   - unread: As in `parse`.
  static func path(
    ofFaulty bytes: UnsafeBufferPointer<UInt8>, limits: HeadLimits = .standard, unread: StaticString? = nil
  ) -> String? {
    let head = UnsafeBufferPointer(rebasing: bytes.prefix(limits.bytes))
    let line = head.prefix { $0 != .lineFeed }
    let words = line.split(separator: .space, maxSplits: 3, omittingEmptySubsequences: false)
    guard words.count > 1 else { return nil }
    var scanner = HeadScanner(head, limits: limits, unread: unread)
    if scanner.hasRequestLine(), let (_, target) = try? target(words[1], unread: unread) { return target.path }
    guard words[1].first == .slash else { return nil }
    // What follows does not change where the request goes, even if the line is too long.
    if let unread, unread.begins(words[1]) { return unread.description }
    let isWhole = line.endIndex < head.endIndex && words.count == 3 && words[2].elementsEqual("HTTP/1.1\r".utf8)
    guard isWhole || words[1].contains(.questionMark) else { return nil }
    return String(decoding: words[1].prefix { $0 != .questionMark }, as: UTF8.self)
  }

  private static func expectation(in headers: HeaderFields) throws(HeadError) -> Bool {
    switch headers.only("Expect") {
    case .absent: return false
    case .once(let value) where HeaderFields.isSame(value, "100-continue"): return true
    case .once, .repeated: throw .expectation
    }
  }
}
