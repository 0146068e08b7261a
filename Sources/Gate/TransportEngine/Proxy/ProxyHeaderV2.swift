internal import Transport

/// Version 2: binary (section 2.2 of the protocol).
///
/// Type-length-values are checked for their lengths only. A checksum among them is not verified, because TCP has one.
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
    let source = start & 0xF == 0 ? nil : try source(in: content, kind: kind)
    return .header(ProxyHeader(source: source, length: fixedLength + Int(length)))
  }

  private static func source(in content: [UInt8], kind: UInt8) throws(ProxyHeader.ParseError) -> SocketAddress? {
    let addressLength: Int
    switch kind {
    case 0x00: return nil
    case 0x11: addressLength = 4
    case 0x21: addressLength = 16
    case 0x31: addressLength = 108
    default: throw .init("version 2: a family or protocol other than UNSPEC, TCP and Unix streams")
    }
    var reader = ByteReader(content[...])
    guard let source = reader.bytes(addressLength), reader.bytes(addressLength) != nil else {
      throw .init("version 2: too short for its addresses")
    }
    guard kind != 0x31 else { return nil }
    guard let port = reader.uint16(), reader.uint16() != nil else {
      throw .init("version 2: too short for its ports")
    }
    while let _ = reader.byte() {
      guard let length = reader.uint16(), reader.bytes(Int(length)) != nil else {
        throw .init("version 2: a type-length-value is longer than the header")
      }
    }
    return .ip(source, port: port)
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
