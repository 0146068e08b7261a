/// The risk metric in a receipt: field 17, a decimal number in text.
public enum RiskMetric {
  /// The greatest metric that is accepted. A device attests a few keys; a farm of apps may attest thousands.
  public static let greatest = 1_000_000

  /// Reads the text of field 17.
  ///
  /// - Throws: `.metricMalformed`, `.metricNegative` or `.metricTooLarge`.
  public static func value(of text: String) throws(ExchangeFault) -> Int {
    let digits = text.hasPrefix("-") ? Substring(text.dropFirst()) : Substring(text)
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
      throw .metricMalformed
    }
    guard digits.startIndex == text.startIndex else { throw .metricNegative }
    guard digits.utf8.count <= 7, let value = Int(digits), value <= greatest else { throw .metricTooLarge }
    return value
  }
}
