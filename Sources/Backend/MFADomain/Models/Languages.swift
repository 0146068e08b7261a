/// The languages that a person reads, the best one first, as language tags (RFC 5646) in lower case.
public struct Languages: Sendable, Hashable {
  /// No language is known.
  public static let unknown = Languages(tags: [])

  /// The maximum number of tags.
  public static let most = 8
  /// The longest header field that is read, in bytes. Of a longer one, the element that is cut and the rest are ignored.
  static let longestField = 256

  /// At most `most` tags.
  public let tags: [String]

  private init(tags: [String]) { self.tags = tags }

  /// The languages of one tag; unknown for `nil` and for a text that is not a tag.
  public init(tag: String?) { tags = tag.flatMap(Self.tag).map { [$0] } ?? [] }

  /// Reads the header field `Accept-Language` (RFC 9110, section 12.5.4).
  ///
  /// Elements that are malformed, refused by `q=0`, or `*` are ignored: a client chooses a text by it and nothing else.
  public init(acceptLanguage field: String) {
    let comma = UInt8(ascii: ",")
    var start = field.utf8.prefix(Self.longestField + 1)
    // Without its end, an element could have another weight.
    if start.count > Self.longestField { start = start[..<(start.lastIndex(of: comma) ?? start.startIndex)] }
    let elements = start.split(separator: comma).prefix(32)
    let weighed = elements.compactMap { element -> (tag: String, weight: Int)? in
      let parts = element.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        .map { String(decoding: $0, as: UTF8.self).filter { $0 != " " && $0 != "\t" } }
      guard let first = parts.first, let tag = Self.tag(first) else { return nil }
      guard parts.count > 1 else { return (tag, 1000) }
      guard parts.count == 2, let weight = Self.weight(parts[1]), weight > 0 else { return nil }
      return (tag, weight)
    }
    var tags: [String] = []
    // A stable order: of equal weights, the first one is the better.
    for weight in Set(weighed.map(\.weight)).sorted(by: >) {
      for element in weighed where element.weight == weight && !tags.contains(element.tag) { tags.append(element.tag) }
    }
    self.tags = Array(tags.prefix(Self.most))
  }

  /// These languages, and then those of `others`.
  public func followed(by others: Languages) -> Languages {
    Languages(tags: Array((tags + others.tags.filter { !tags.contains($0) }).prefix(Self.most)))
  }

  /// The first language that is available, as RFC 4647, section 3.4, looks it up: `de-ch` finds `de`.
  ///
  /// - Returns: The tag that `isAvailable` accepted; `nil` if it accepts none.
  public func lookup(_ isAvailable: (_ tag: String) -> Bool) -> String? {
    for tag in tags {
      var subtags = tag.split(separator: "-")
      while !subtags.isEmpty {
        let candidate = subtags.joined(separator: "-")
        if isAvailable(candidate) { return candidate }
        subtags.removeLast()
        // A single letter introduces what follows it.
        while let last = subtags.last, last.utf8.count == 1, subtags.count > 1 { subtags.removeLast() }
      }
    }
    return nil
  }

  /// `text` in lower case, if it is a language tag of at most 35 bytes; otherwise `nil`.
  public static func tag(_ text: String) -> String? {
    guard (2...35).contains(text.utf8.count), text.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let subtags = text.lowercased().utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    guard let language = subtags.first, (2...8).contains(language.count), language.allSatisfy(letters.contains),
      subtags.allSatisfy({ (1...8).contains($0.count) && $0.allSatisfy { letters.contains($0) || digits.contains($0) } }
      )
    else { return nil }
    return text.lowercased()
  }

  /// The weight in thousandths of `q=0.8` (RFC 9110, section 12.4.2).
  private static func weight(_ text: String) -> Int? {
    let bytes = Array(text.utf8)
    guard (3...7).contains(bytes.count), bytes[0] | 0x20 == UInt8(ascii: "q"), bytes[1] == UInt8(ascii: "=") else {
      return nil
    }
    let (whole, rest) = (bytes[2], bytes.dropFirst(3))
    guard whole == UInt8(ascii: "0") || whole == UInt8(ascii: "1"), rest.first.map({ $0 == UInt8(ascii: ".") }) ?? true
    else { return nil }
    let digits = rest.dropFirst()
    guard digits.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else { return nil }
    let fraction = (Array(digits) + [0x30, 0x30, 0x30]).prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
    guard whole == UInt8(ascii: "0") || fraction == 0 else { return nil }
    return whole == UInt8(ascii: "1") ? 1000 : fraction
  }
}
