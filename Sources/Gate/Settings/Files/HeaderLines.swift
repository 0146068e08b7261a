internal import ConfigurationEngine

/// A file with header fields for a collector: one `Name: value` on each line. Empty lines and lines that begin with
/// `#` are skipped.
package enum HeaderLines {
  package static let hint = "write one Name: value on each line, in a file of mode 0600"

  /// The fields that the gate sets itself.
  private static let ownNames: Set = [
    "connection", "content-length", "content-type", "host", "transfer-encoding", "user-agent",
  ]

  /// Returns the fields; `nil` if a line is not a field, sets one of the gate's own, or if the file has none.
  package static func fields(in bytes: [UInt8]) -> [(name: String, value: String)]? {
    var fields: [(name: String, value: String)] = []
    for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
      guard !line.hasPrefix("#"), line.contains(where: { !$0.isWhitespace }) else { continue }
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let (name, value) = (line[..<colon], line[line.index(after: colon)...].drop { $0 == " " })
      guard !name.isEmpty, name.utf8.allSatisfy({ NetworkName.isLetterOrDigit($0) || "-_".utf8.contains($0) }),
        !ownNames.contains(name.lowercased()), !value.isEmpty, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
      else { return nil }
      fields.append((String(name), String(value)))
    }
    return fields.isEmpty ? nil : fields
  }
}
