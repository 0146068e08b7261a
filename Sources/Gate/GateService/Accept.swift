internal import ByteCoding
internal import Glibc
internal import Transport

/// Parses the part of `Accept` (RFC 9110 section 12.5.1) that the gate uses.
enum Accept {
  /// Returns `true` if JSON is requested by name. Wildcards do not count.
  ///
  /// Every request passes here and a field may have 16 KB. So the value is read once, byte by byte, and a range that
  /// is too short is skipped.
  static func namesJSON(in headers: HeaderFields) -> Bool {
    headers.values(of: "Accept").contains { value in
      var value = value
      return value.withUTF8 { UnsafeRawBufferPointer($0).parts(at: UInt8(ascii: ","), contain: isJSON) }
    }
  }

  private static func isJSON(_ range: UnsafeRawBufferPointer) -> Bool {
    guard range.count >= json.count else { return false }
    var position = 0
    var isIt = false
    // The first part is the type, the others are its parameters.
    let isRefused = range.parts(at: UInt8(ascii: ";")) { part in
      defer { position += 1 }
      guard position == 0 else { return isZeroWeight(part.withoutSpaces) }
      let type = part.withoutSpaces
      isIt = type.elementsEqual(json) { $0.lowercasedASCII == $1 }
      return !isIt
    }
    return isIt && !isRefused
  }

  private static let json = Array("application/json".utf8)

  private static func isZeroWeight(_ parameter: UnsafeRawBufferPointer) -> Bool {
    guard parameter.count >= 2, parameter[0] | 0x20 == UInt8(ascii: "q"), parameter[1] == UInt8(ascii: "=") else {
      return false
    }
    return parameter.dropFirst(2).allSatisfy { $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: ".") }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns `true` if `condition` is true for one of the parts between separators. The search stops there.
  fileprivate func parts(at separator: UInt8, contain condition: (UnsafeRawBufferPointer) -> Bool) -> Bool {
    var rest = self
    while let start = rest.baseAddress {
      let found = memchr(start, Int32(separator), rest.count)
      let length = found.map { UnsafeRawPointer($0) - start } ?? rest.count
      if condition(UnsafeRawBufferPointer(start: start, count: length)) { return true }
      if found == nil { return false }
      rest = UnsafeRawBufferPointer(start: start + length + 1, count: rest.count - length - 1)
    }
    return false
  }

  fileprivate var withoutSpaces: UnsafeRawBufferPointer {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
      return UnsafeRawBufferPointer(start: baseAddress, count: 0)
    }
    return UnsafeRawBufferPointer(rebasing: self[first...last])
  }
}
