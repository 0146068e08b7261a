import ByteCoding
import Testing

@Suite("Timestamps")
struct TimestampTests {
  /// The examples of RFC 3339 section 5.8, and the limits of ranges.
  static let known: [(String, Int64, Int32)] = [
    ("1970-01-01T00:00:00Z", 0, 0), ("1985-04-12T23:20:50.52Z", 482_196_050, 520_000_000),
    ("1996-12-19T16:39:57-08:00", 851_042_397, 0), ("1990-12-31T23:59:60Z", 662_688_000, 0),
    ("1990-12-31T15:59:60-08:00", 662_688_000, 0), ("1937-01-01T12:00:27.87+00:20", -1_041_337_173, 870_000_000),
    ("2000-02-29t00:00:00z", 951_782_400, 0), ("0000-01-01T00:00:00Z", -62_167_219_200, 0),
    ("9999-12-31T23:59:59.999999999Z", 253_402_300_799, 999_999_999),
    ("2020-11-21T22:13:02.1Z", 1_605_996_782, 100_000_000),
    ("2020-11-27T22:41:40.46Z", 1_606_516_900, 460_000_000), ("1969-12-31T23:59:59.5Z", -1, 500_000_000),
  ]

  @Test("Timestamps of RFC 3339 are parsed", arguments: known)
  func reads(_ example: (text: String, seconds: Int64, nanoseconds: Int32)) throws {
    let timestamp = try #require(Timestamp(rfc3339: example.text))
    #expect(timestamp.seconds == example.seconds)
    #expect(timestamp.nanoseconds == example.nanoseconds)
  }

  @Test(
    "Text that is not a date-time of RFC 3339 is refused",
    arguments: [
      "", "2020-11-21", "2020-11-21T22:13:02", "2020-11-21 22:13:02Z", "2020-11-21T22:13Z", "2020-11-21T22:13:02.Z",
      "2020-11-21T22:13:02.1234567890Z", "2020-13-01T00:00:00Z", "2020-00-01T00:00:00Z", "2020-11-31T00:00:00Z",
      "2021-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2020-11-00T00:00:00Z", "2020-11-21T24:00:00Z",
      "2020-11-21T23:60:00Z", "2020-11-21T23:00:61Z", "2020-11-21T22:13:02+24:00", "2020-11-21T22:13:02+01:60",
      "2020-11-21T22:13:02+0100", "2020-11-21T22:13:02+01", "2020-11-21T22:13:02Z ", " 2020-11-21T22:13:02Z",
      "+020-11-21T22:13:02Z", "20201121T221302Z", "2020-11-21T22:13:02,5Z", "2020-11-21T22:13:02\u{2212}01:00",
      "２020-11-21T22:13:02Z", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:60Z", "0000-01-01T00:00:00+00:01",
    ])
  func refuses(_ text: String) { #expect(Timestamp(rfc3339: text) == nil) }

  @Test("A timestamp is formatted with 0, 3, 6 or 9 fraction digits and parsed again")
  func writes() {
    let cases: [(Int64, String)] = [
      (0, "2001-09-09T01:46:40Z"), (500_000_000, "2001-09-09T01:46:40.500Z"),
      (1_000, "2001-09-09T01:46:40.000001Z"), (7, "2001-09-09T01:46:40.000000007Z"),
    ]
    for (nanoseconds, text) in cases {
      let timestamp = Timestamp(seconds: 1_000_000_000, nanoseconds: nanoseconds)
      #expect(timestamp.description == text)
      #expect(Timestamp(rfc3339: text) == timestamp)
    }
  }

  @Test("Over 800 years, day numbers are consecutive and convert back to the same date")
  func countsDays() {
    var expected = CivilDate.day(year: 1600, month: 1, day: 1)
    for year in 1600..<2400 as Range<Int64> {
      for month in 1...12 as ClosedRange<Int64> {
        for day in 1...CivilDate.days(inMonth: month, of: year) {
          guard CivilDate.day(year: year, month: month, day: day) == expected,
            CivilDate.date(ofDay: expected) == (year, month, day)
          else {
            Issue.record("\(year)-\(month)-\(day)")
            return
          }
          expected += 1
        }
      }
    }
    #expect(CivilDate.day(year: 1970, month: 1, day: 1) == 0)
  }

  @Test("Nanoseconds are carried and borrowed")
  func carries() {
    #expect(Timestamp(seconds: 1, nanoseconds: 2_000_000_001) == Timestamp(seconds: 3, nanoseconds: 1))
    #expect(Timestamp(seconds: 1, nanoseconds: -1) == Timestamp(seconds: 0, nanoseconds: 999_999_999))
    #expect(Timestamp(milliseconds: -1) == Timestamp(seconds: -1, nanoseconds: 999_000_000))
    #expect(Timestamp(milliseconds: -1).milliseconds == -1)
    #expect(Timestamp(milliseconds: 1500).milliseconds == 1500)
  }

  @Test("Advancing by a duration and measuring it are inverse")
  func moves() {
    let start = Timestamp(seconds: 100, nanoseconds: 250_000_000)
    for duration: Duration in [
      .zero, .milliseconds(1), .seconds(-1), .nanoseconds(-1), .seconds(86400), .milliseconds(-750),
    ] {
      #expect(start.advanced(by: duration).since(start) == duration)
    }
  }

  @Test("Advancing saturates at the limits of the range")
  func saturates() {
    let end = Timestamp(seconds: .max)
    #expect(end.advanced(by: .seconds(1)).seconds == .max)
    #expect(Timestamp(seconds: .min).advanced(by: .seconds(-1)).seconds == .min)
  }

  @Test("Differences and milliseconds saturate at the limits of the range")
  func extremes() {
    let (first, last) = (Timestamp(seconds: .min), Timestamp(seconds: .max, nanoseconds: 999_999_999))
    #expect(last.since(first) > .seconds(Int64.max - 2) && first.since(last) < .seconds(Int64.min + 3))
    #expect(first.milliseconds == .min && last.milliseconds == .max)
    for milliseconds in [Int64.min, .min + 1, -1001, -1000, -999, .max - 1, .max] {
      #expect(Timestamp(milliseconds: milliseconds).milliseconds == milliseconds)
    }
  }

  @Test("Each second that a timestamp can have is formatted, also the first and the last one")
  func firstAndLast() {
    let cases: [(Int64, String)] = [
      (.min, "-292277022657-01-27T08:29:52Z"), (.min + 86_399, "-292277022657-01-28T08:29:51Z"),
      (.max, "292277026596-12-04T15:30:07Z"), (-86_400, "1969-12-31T00:00:00Z"), (-86_401, "1969-12-30T23:59:59Z"),
    ]
    for (seconds, text) in cases { #expect(Timestamp(seconds: seconds).description == text) }
    #expect("\(Timestamp(milliseconds: .min))" == "-292275055-05-16T16:47:04.192Z")
  }

  @Test("Timestamps are ordered by time")
  func compares() {
    let instants = [
      Timestamp(seconds: -1), Timestamp(seconds: 0), Timestamp(seconds: 0, nanoseconds: 1), Timestamp(seconds: 1),
    ]
    #expect(instants.shuffled().sorted() == instants)
  }
}
