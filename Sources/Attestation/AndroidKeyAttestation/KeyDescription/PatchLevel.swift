/// The month of a security patch. Devices report YYYYMM for the system and YYYYMMDD for other parts.
public struct PatchLevel: Sendable, Hashable, Comparable {
  /// The year, from 2000 on.
  public let year: Int
  /// The month, 1 to 12.
  public let month: Int

  /// `nil` for what is no month.
  public init?(year: Int, month: Int) {
    guard (2000...9999).contains(year), (1...12).contains(month) else { return nil }
    self.year = year
    self.month = month
  }

  /// The month in `number`, which a device reported; `nil` if it is 0 or anything else that is no date. The day does
  /// not count: devices write 00, too.
  public init?(reported number: UInt64) {
    guard let number = Int(exactly: number) else { return nil }
    switch number {
    case 100_000...999_999: self.init(year: number / 100, month: number % 100)
    case 10_000_000...99_999_999: self.init(year: number / 10_000, month: number / 100 % 100)
    default: return nil
    }
  }

  /// Parses `YYYY-MM`.
  public init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.count == 4, parts[1].utf8.count == 2,
      parts.allSatisfy({ $0.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } }),
      let year = Int(parts[0]), let month = Int(parts[1])
    else { return nil }
    self.init(year: year, month: month)
  }

  public static func < (first: Self, second: Self) -> Bool {
    (first.year, first.month) < (second.year, second.month)
  }
}

extension PatchLevel: CustomStringConvertible {
  public var description: String { "\(year)-\(month < 10 ? "0" : "")\(month)" }
}
