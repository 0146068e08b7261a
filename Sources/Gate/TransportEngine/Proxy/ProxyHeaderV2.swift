internal import Transport

/// Version 2: binary (section 2.2 of the protocol).
///
/// Of type-length-values, those that name an endpoint of a private network are read; the others are checked for their
/// lengths only. A checksum among them is not verified, because TCP has one.
enum ProxyHeaderV2 {
  static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
  /// The signature, version and command, family and protocol, and the length of the rest.
  private static let fixedLength = 16

  static func parse(_ bytes: [UInt8]) throws(ProxyHeader.ParseError) -> ProxyHeader.Outcome {
    var reader = ByteReader(bytes.dropFirst(signature.count))
    guard let start = reader.byte() else { return .incomplete }
    guard start >> 4 == 2 else { throw .init("version 2: the version is not 2") }
    guard start & 0xF <= 1 else { throw .init("version 2: a command other than LOCAL and PROXY") }
    guard let kind = reader.byte(), let length = reader.uint16() else { return .incomplete }
    guard fixedLength + Int(length) <= ProxyHeader.longest else {
      throw .init("version 2: more than \(ProxyHeader.longest) bytes")
    }
    guard let content = reader.bytes(Int(length)) else { return .incomplete }
    // With LOCAL the header says nothing about a client; addresses in it are ignored.
    let (source, endpoint) = start & 0xF == 0 ? (nil, nil) : try client(in: content, kind: kind)
    return .header(ProxyHeader(source: source, endpoint: endpoint, length: fixedLength + Int(length)))
  }

  private static func client(
    in content: [UInt8], kind: UInt8
  ) throws(ProxyHeader.ParseError) -> (source: SocketAddress?, endpoint: String?) {
    let addressLength: Int
    switch kind {
    case 0x00: return (nil, nil)
    case 0x11: addressLength = 4
    case 0x21: addressLength = 16
    case 0x31: addressLength = 108
    default: throw .init("version 2: a family or protocol other than UNSPEC, TCP and Unix streams")
    }
    var reader = ByteReader(content[...])
    guard let source = reader.bytes(addressLength), reader.bytes(addressLength) != nil else {
      throw .init("version 2: too short for its addresses")
    }
    guard kind != 0x31 else { return (nil, nil) }
    guard let port = reader.uint16(), reader.uint16() != nil else {
      throw .init("version 2: too short for its ports")
    }
    var endpoint: String?
    while let type = reader.byte() {
      guard let length = reader.uint16(), let value = reader.bytes(Int(length)) else {
        throw .init("version 2: a type-length-value is longer than the header")
      }
      endpoint = endpoint ?? Self.endpoint(type, value)
    }
    return (.ip(source, port: port), endpoint)
  }

  /// The name of the endpoint in a type-length-value of AWS (PrivateLink), Azure (Private Link) or Google Cloud (Private
  /// Service Connect); `nil` for any other one.
  private static func endpoint(_ type: UInt8, _ value: [UInt8]) -> String? {
    let content = value.dropFirst()
    switch (type, value.first) {
    case (0xEA, 0x01):
      // `vpce-` and 8 or 17 hex digits. Only what a log line can hold as it is.
      let isPlain = content.allSatisfy(ByteSet.hostName.contains)
      return (1...64).contains(content.count) && isPlain ? String(decoding: content, as: UTF8.self) : nil
    case (0xEE, 0x01):
      return content.count == 4 ? String(content.reversed().reduce(0) { $0 << 8 | UInt32($1) }) : nil
    case (0xE0, _): return value.count == 8 ? String(value.reduce(0) { $0 << 8 | UInt64($1) }) : nil
    default: return nil
    }
  }
}

/// Reads bytes from the front of a slice, in network byte order.
private struct ByteReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  mutating func byte() -> UInt8? { rest.popFirst() }

  mutating func uint16() -> UInt16? { bytes(2).map { $0.reduce(0) { $0 << 8 | UInt16($1) } } }

  mutating func bytes(_ count: Int) -> [UInt8]? {
    guard rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }
}
