internal import ByteCoding

extension ASN1Reader {
  /// A UTCTime or GeneralizedTime in the forms that certificates have: whole seconds, in UTC, ending in `Z` (RFC 5280
  /// section 4.1.2.5).
  mutating func time() throws(ASN1Error) -> Timestamp {
    let element = try next()
    let digits = String(decoding: element.content, as: UTF8.self)
    switch element.tag {
    case .utcTime where digits.utf8.count == 13:
      // Two digits mean the years 1950 to 2049.
      return try Self.timestamp((digits.first.map { $0 >= "5" } == true ? "19" : "20") + digits)
    case .generalizedTime where digits.utf8.count == 15:
      return try Self.timestamp(digits)
    case .utcTime, .generalizedTime:
      throw .malformed("a time of another form than YYMMDDhhmmssZ or YYYYMMDDhhmmssZ")
    default:
      throw .unexpectedTag(expected: .utcTime, found: element.tag)
    }
  }

  /// `YYYYMMDDhhmmssZ`
  private static func timestamp(_ text: String) throws(ASN1Error) -> Timestamp {
    var rest = Substring(text)
    func take(_ count: Int) -> Substring {
      defer { rest = rest.dropFirst(count) }
      return rest.prefix(count)
    }
    let date = "\(take(4))-\(take(2))-\(take(2))"
    let time = "\(take(2)):\(take(2)):\(take(2))"
    guard let timestamp = Timestamp(rfc3339: "\(date)T\(time)\(rest)"), rest == "Z" else {
      throw .malformed("a time that does not exist")
    }
    return timestamp
  }
}
