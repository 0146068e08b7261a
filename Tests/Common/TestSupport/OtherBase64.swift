/// Forms of base64 that encoders of devices write in place of the standard one.
public enum OtherBase64: CaseIterable, Sendable {
  case unpadded
  case urlSafe
  case urlSafeWithPadding
  /// Lines of 76 digits with LF, as the default encoder of Android writes them.
  case lines

  /// Returns `text`, which is in the standard form, in this form.
  public func text(_ text: String) -> String {
    let digits = text.prefix { $0 != "=" }
    let urlSafe = digits.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
    switch self {
    case .unpadded: return String(digits)
    case .urlSafe: return String(urlSafe)
    case .urlSafeWithPadding: return String(urlSafe) + text.dropFirst(digits.count)
    case .lines:
      let lines = stride(from: 0, to: text.utf8.count, by: 76).map { text.dropFirst($0).prefix(76) }
      return lines.joined(separator: "\n") + "\n"
    }
  }

  /// Returns `text`, which is in the standard form, with digits of both alphabets; `nil` unless it has two digits in
  /// which they differ.
  public static func mixed(_ text: String) -> String? {
    guard let first = text.firstIndex(where: { "+/".contains($0) }),
      text[text.index(after: first)...].contains(where: { "+/".contains($0) })
    else { return nil }
    var mixed = text
    mixed.replaceSubrange(first...first, with: text[first] == "+" ? "-" : "_")
    return mixed
  }
}
