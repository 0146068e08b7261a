internal import ByteCoding

/// Formats the dates of HTTP fields (RFC 9110 section 5.6.7).
enum HTTPDate {
  // Three letters a word.
  private static let weekdays: StaticString = "ThuFriSatSunMonTueWed"
  private static let months: StaticString = "JanFebMarAprMayJunJulAugSepOctNovDec"

  /// Returns `time` as an IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`. Times before
  /// 1970 become the start of 1970.
  static func text(for time: Timestamp) -> String {
    let (days, second) = max(0, time.seconds).quotientAndRemainder(dividingBy: 86400)
    let (year, month, day) = CivilDate.date(ofDay: days)
    return String(unsafeUninitializedCapacity: 29) { text in
      var end = 0
      func put(_ mark: UInt8) {
        text[end] = mark
        end += 1
      }
      func put(word index: Int64, of words: StaticString) {
        for letter in 3 * Int(index)..<3 * Int(index) + 3 { put(words.utf8Start[letter]) }
      }
      func put(twoDigits number: Int64) {
        put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10 % 10))
        put(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
      }
      // 1 January 1970 was a Thursday.
      put(word: days % 7, of: weekdays)
      put(UInt8(ascii: ","))
      put(.space)
      put(twoDigits: day)
      put(.space)
      put(word: month - 1, of: months)
      put(.space)
      put(twoDigits: year / 100)
      put(twoDigits: year)
      put(.space)
      put(twoDigits: second / 3600)
      put(.colon)
      put(twoDigits: second / 60 % 60)
      put(.colon)
      put(twoDigits: second % 60)
      for letter in " GMT".utf8 { put(letter) }
      return end
    }
  }
}
