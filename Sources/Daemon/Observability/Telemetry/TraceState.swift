/// The data of the systems that took part in a trace before (W3C Trace Context section 3.3).
public enum TraceState {
  /// The maximum length of a value that is sent on. The specification asks for at least this.
  public static let longest = 512
  private static let mostMembers = 32

  /// Returns the value of `tracestate` for the next system; `nil` for none.
  ///
  /// The members of all fields are one list. Empty members are left out, and so are the last ones, which are the oldest,
  /// if the list is too long. A list with a member that is not `key=value` in printable ASCII is dropped.
  ///
  /// - Parameter values: The values of the fields, in their order.
  public static func forwarded(_ values: [String]) -> String? {
    var result = ""
    var count = 0
    for value in values {
      for member in value.utf8.split(separator: UInt8(ascii: ",")) {
        let member = trimmed(member)
        if member.isEmpty { continue }
        guard isMember(member) else { return nil }
        let length = member.count + (result.isEmpty ? 0 : 1)
        if count == mostMembers || result.utf8.count + length > longest { return result.isEmpty ? nil : result }
        if !result.isEmpty { result += "," }
        result += Substring(member)
        count += 1
      }
    }
    return result.isEmpty ? nil : result
  }

  private static func trimmed(_ member: Substring.UTF8View) -> Substring.UTF8View {
    var member = member
    while let first = member.first, isSpace(first) { member.removeFirst() }
    while let last = member.last, isSpace(last) { member.removeLast() }
    return member
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  private static func isMember(_ member: Substring.UTF8View) -> Bool {
    guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else { return false }
    let (key, value) = (member[..<equals], member[member.index(after: equals)...])
    return !key.isEmpty && !value.isEmpty && key.allSatisfy(isInKey) && value.allSatisfy { (0x20...0x7E).contains($0) }
      && !value.contains(UInt8(ascii: "="))
  }

  private static func isInKey(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
      UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"), UInt8(ascii: "@"):
      true
    default: false
    }
  }
}
