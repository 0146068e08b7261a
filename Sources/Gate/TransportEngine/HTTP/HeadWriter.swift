internal import Transport

/// Why a head could not be written. Each is a mistake of this program or of the caller that supplied a value.
enum HeadWriteError: String, Error, Sendable, CaseIterable {
  case method = "the method is not a token"
  case target = "the request target is not in origin form, or not in absolute form for a proxy"
  case status = "the status is not a final status"
  case fieldName = "a field name is not a token"
  case fieldValue = "a field value holds a control character"
}

/// Writes a message head line by line. It refuses line breaks in its input, so that no value can inject a field.
struct HeadWriter {
  private(set) var bytes: [UInt8] = {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(512)
    return bytes
  }()

  /// Begins a request.
  ///
  /// - Parameter target: In origin form, or in absolute form with `http` for a proxy.
  init(method: String, target: String, toProxy: Bool = false) throws(HeadWriteError) {
    guard !method.isEmpty, method.hasOnly(ByteSet.token.contains) else { throw .method }
    let isOfForm = toProxy ? target.hasPrefix("http://") : target.utf8.first == .slash
    guard isOfForm, target.hasOnly({ $0 > 0x20 && $0 < 0x7F }) else { throw .target }
    write(method)
    bytes.append(.space)
    write(target)
    write(" HTTP/1.1")
    endLine()
  }

  /// Begins the 101 that opens a WebSocket with the fields that each one has (RFC 6455 section 4.2.2).
  ///
  /// - Parameter accept: The `Sec-WebSocket-Accept`.
  init(openingWebSocket accept: String) throws(HeadWriteError) {
    guard accept.hasOnly(\.isFieldContent) else { throw .fieldValue }
    bytes.append(
      contentsOf: """
        HTTP/1.1 101 Switching Protocols\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Accept:\u{20}
        """.utf8)
    write(accept)
    endLine()
  }

  /// Begins a response.
  init(status: Int) {
    write("HTTP/1.1 \(status) ")
    ReasonPhrase.phrase(for: status).withUTF8Buffer { bytes.append(contentsOf: $0) }
    endLine()
  }

  mutating func field(_ name: String, _ value: String) throws(HeadWriteError) {
    guard !name.isEmpty, name.hasOnly(ByteSet.token.contains) else { throw .fieldName }
    guard value.hasOnly(\.isFieldContent) else { throw .fieldValue }
    write(name)
    write(": ")
    write(value)
    endLine()
  }

  /// Writes `fields`, except those whose names are in `omitted`.
  mutating func fields(_ fields: HeaderFields, except omitted: FieldNameSet? = nil) throws(HeadWriteError) {
    try fields.forEachLine { line throws(HeadWriteError) in
      if omitted?.contains(line.name) == true { return }
      guard !line.name.isEmpty, line.name.allSatisfy(ByteSet.token.contains) else { throw .fieldName }
      guard line.value.allSatisfy(\.isFieldContent) else { throw .fieldValue }
      bytes.append(contentsOf: line.bytes)
    }
  }

  /// Writes the empty line and `body`, and returns the whole message.
  consuming func ended(with body: [UInt8] = []) -> [UInt8] {
    endLine()
    return body.isEmpty ? bytes : bytes + body
  }

  private mutating func write(_ text: String) { bytes.append(contentsOf: text.utf8) }

  private mutating func endLine() {
    bytes.append(.carriageReturn)
    bytes.append(.lineFeed)
  }
}

extension String {
  /// Whether each byte is allowed. A loop over bytes in one piece costs less than one over a view of UTF-8.
  @inline(__always)
  fileprivate func hasOnly(_ isAllowed: (UInt8) -> Bool) -> Bool {
    utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isAllowed) } ?? utf8.allSatisfy(isAllowed)
  }
}

/// The usual reason phrases (RFC 9110 section 15). Programs ignore them.
enum ReasonPhrase {
  static func phrase(for status: Int) -> StaticString {
    switch status {
    case 101: "Switching Protocols"
    case 200: "OK"
    case 201: "Created"
    case 202: "Accepted"
    case 204: "No Content"
    case 301: "Moved Permanently"
    case 302: "Found"
    case 304: "Not Modified"
    case 307: "Temporary Redirect"
    case 308: "Permanent Redirect"
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 406: "Not Acceptable"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 410: "Gone"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 417: "Expectation Failed"
    case 422: "Unprocessable Content"
    case 426: "Upgrade Required"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 500: "Internal Server Error"
    case 501: "Not Implemented"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    default: ""
    }
  }
}
