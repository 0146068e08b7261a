internal import Transport

/// Empty list elements, which recipients ignore (RFC 9110 section 5.6.1.2): a list of nothing else is no list.
enum EmptyElements {
  /// Returns whether an element of a comma-separated list is empty. An empty value is one empty element.
  static func arePresent(in value: UnsafeBufferPointer<UInt8>) -> Bool {
    var isEmpty = true
    for byte in value {
      if byte == UInt8(ascii: ",") {
        if isEmpty { return true }
        isEmpty = true
      } else if byte != .space && byte != .tab {
        isEmpty = false
      }
    }
    return isEmpty
  }

  /// Returns a list without its empty elements; `nil` if no element is left. No element may have a comma in quotes.
  static func removed(from value: String) -> String? {
    var value = value
    if !value.withUTF8(arePresent) { return value }
    let elements = value.utf8.split(separator: UInt8(ascii: ",")).map { $0.trimmingWhitespace() }
    let kept = elements.filter { !$0.isEmpty }.map { String(Substring($0)) }
    return kept.isEmpty ? nil : kept.joined(separator: ", ")
  }
}

extension HeaderFields {
  /// The lists of an opening handshake. Neither has elements with commas in quotes: a quoted parameter is a token.
  private static let handshakeLists = FieldNameSet(names: ["Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"])

  /// Whether a list of an opening handshake has an empty element.
  var hasEmptyHandshakeElement: Bool {
    guard contains("Sec-WebSocket-Protocol") || contains("Sec-WebSocket-Extensions") else { return false }
    var isFound = false
    forEachLine { line in
      if !isFound, Self.handshakeLists.contains(line.name), EmptyElements.arePresent(in: line.value) { isFound = true }
    }
    return isFound
  }

  /// Returns the fields with the lists of a valid opening handshake written without their empty elements.
  func withoutEmptyHandshakeElements() -> HeaderFields {
    var fields = HeaderFields()
    fields.reserve(0, bytes: byteCount)
    forEachLine { line in
      guard Self.handshakeLists.contains(line.name) else {
        fields.append(line)
        return
      }
      guard let value = EmptyElements.removed(from: String(decoding: line.value, as: UTF8.self)) else { return }
      fields.append(String(decoding: line.name, as: UTF8.self), value)
    }
    return fields
  }
}
