internal import ConfigurationEngine

extension Kind where Value == String {
  /// The ID of an Apple Developer team: exactly ten characters of A-Z and 0-9.
  static var teamID: Kind {
    Kind(
      name: "team id", form: "ten characters of A-Z and 0-9", schema: .textOrNumber("^[A-Z0-9]{10}$"),
      example: "AAABBBCCC1"
    ) { text throws(InvalidSetting) in
      if isTeamID(text) { return text }
      let reason =
        text.count == 10
        ? "\(InvalidSetting.quoted(text)) contains characters other than A-Z and 0-9"
        : "\(InvalidSetting.quoted(text)) has \(text.count) characters instead of ten of A-Z and 0-9"
      throw InvalidSetting(reason, suggestion: isTeamID(text.uppercased()) ? text.uppercased() : nil)
    }
  }

  private static func isTeamID(_ text: String) -> Bool {
    text.utf8.count == 10
      && text.utf8.allSatisfy {
        NetworkName.isLetterOrDigit($0) && !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
      }
  }

  /// A bundle identifier: letters, digits, hyphens, dots and underscores, no empty part, at most 155 characters.
  /// Apple's documentation of `CFBundleIdentifier` excludes underscores, but Apple has published identifiers that
  /// contain them.
  static var bundleID: Kind {
    Kind(
      name: "bundle id", form: "letters, digits, `-`, `.` and `_`",
      schema: .matching("^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$", longest: 155), example: "com.example.app"
    ) { text throws(InvalidSetting) in
      let parts = text.split(separator: ".", omittingEmptySubsequences: false)
      guard
        text.utf8.allSatisfy({ NetworkName.isLetterOrDigit($0) || "-._".utf8.contains($0) })
      else {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) contains characters other than letters, digits, hyphen, dot and underscore")
      }
      guard parts.allSatisfy({ !$0.isEmpty }) else {
        throw InvalidSetting("\(InvalidSetting.quoted(text)) has an empty part")
      }
      guard text.utf8.count <= 155 else { throw InvalidSetting("a bundle id has at most 155 characters") }
      if parts.count > 2, isTeamID(String(parts[0])) {
        throw InvalidSetting(
          "\(InvalidSetting.quoted(text)) starts with the team id", suggestion: String(text.dropFirst(11)))
      }
      return text
    }
  }

  /// A name or a URL that stands in assertions or tokens: for everybody to read.
  static func nameOrURL(form: String) -> Kind {
    Kind(name: "text", form: form, schema: .anyText) { value throws(InvalidSetting) in
      let text = try Kind.text.read(value)
      let scheme = text.firstRange(of: "://")
      guard scheme.map({ text[$0.upperBound...].prefix { !"/?#".contains($0) }.contains("@") }) != true else {
        throw InvalidSetting("must not contain a user or a password: it stands in assertions and tokens")
      }
      return text
    }
  }
}
