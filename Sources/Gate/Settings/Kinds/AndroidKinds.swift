internal import ConfigurationEngine
internal import ByteCoding

extension Kind where Value == String {
  /// The name of an Android package: two or more words of letters, digits and `_`, each beginning with a letter, with
  /// dots between them, at most 255 characters.
  static var packageName: Kind {
    Kind(
      name: "package", form: "the name of an Android package",
      schema: .matching("^[A-Za-z][A-Za-z0-9_]*(\\.[A-Za-z][A-Za-z0-9_]*)+$", longest: 255), example: "com.example.app"
    ) { text throws(InvalidSetting) in
      let words = text.split(separator: ".", omittingEmptySubsequences: false)
      guard
        text.utf8.count <= 255, words.count >= 2,
        words.allSatisfy({ word in
          word.utf8.first.map { NetworkName.isLetterOrDigit($0) && !(0x30...0x39).contains($0) } == true
            && word.utf8.allSatisfy { NetworkName.isLetterOrDigit($0) || $0 == UInt8(ascii: "_") }
        })
      else { throw InvalidSetting("\(InvalidSetting.quoted(text)) is not the name of an Android package") }
      return text
    }
  }

  /// A URL with `https`, or the path of a file. The layer has already made a path absolute.
  static var fileOrURL: Kind {
    Kind(
      name: "file or URL", form: "an `https` URL or a path", isPath: true,
      masked: { $0.contains("://") ? MaskedURL.withoutQuery($0) : $0 }
    ) { text throws(InvalidSetting) in
      guard text.contains("://") else { return try Kind.file.read(text) }
      guard text.hasPrefix("https://") else {
        throw InvalidSetting("\(InvalidSetting.quoted(MaskedURL.withoutQuery(text))) is not a URL with https")
      }
      let host = text.dropFirst("https://".count).prefix { $0 != "/" }
      guard !host.isEmpty, !host.contains("@"), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
        !text.contains("#")
      else { throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a URL with a host and without a user") }
      return text
    }
  }
}

extension Kind where Value == [UInt8] {
  /// A SHA-256 in hex, also with colons as `keytool` and `apksigner` print it.
  static var sha256: Kind {
    Kind(
      name: "sha-256", form: "64 hex digits, also with colons",
      schema: .matching("^([0-9A-Fa-f]{64}|[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31})$"),
      example: "6f1b0a3d" + String(repeating: "0", count: 56)
    ) { text throws(InvalidSetting) in
      let groups = text.split(separator: ":", omittingEmptySubsequences: false)
      guard groups.count == 1 || groups.allSatisfy({ $0.utf8.count == 2 }),
        let bytes = Hex.decode(groups.joined().lowercased()), bytes.count == 32
      else { throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a SHA-256: write 64 hex digits") }
      return bytes
    }
  }
}

extension Kind where Value == GateSettings.Month {
  /// A month: `2026-01`.
  static var month: Kind {
    Kind(
      name: "month", form: "`YYYY-MM`", schema: .matching("^20[0-9]{2}-(0[1-9]|1[0-2])$"), example: "2026-01"
    ) { text throws(InvalidSetting) in
      let parts = text.split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 2, parts[0].utf8.count == 4, parts[1].utf8.count == 2, let year = Digits.value(of: parts[0]),
        let month = Digits.value(of: parts[1]), (2000...2099).contains(year), (1...12).contains(month)
      else { throw InvalidSetting("\(InvalidSetting.quoted(text)) is not a month: write it as 2026-01") }
      return GateSettings.Month(year: year, month: month)
    }
  }
}
