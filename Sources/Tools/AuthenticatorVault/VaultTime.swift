/// The times of a vault: milliseconds since 1970.
///
/// A time in a file is any number. It is bounded where it is read, and arithmetic with it does not go beyond `last`.
public enum VaultTime {
  /// The latest time of an act: 2^53, which is also the largest whole number that every reader of JSON keeps.
  public static let last: Int64 = 1 << 53
  /// What a later time is read as: the end of the year 9999. Acts that follow it still have later times.
  public static let latestRead: Int64 = 253_402_300_799_999

  /// `time` itself if it is possible: from 1970 to `last`.
  public static func isPossible(_ time: Int64) -> Bool { (0...last).contains(time) }

  /// `time` within 0 and `last`.
  static func bounded(_ time: Int64) -> Int64 { min(max(time, 0), last) }

  /// The millisecond after `time`, up to `last`.
  public static func next(_ time: Int64) -> Int64 { bounded(time >= last ? last : time + 1) }

  /// The time of an edit or an addition, as a file has it.
  static func read(_ time: Int64) -> Int64 { time > last ? latestRead : max(time, 0) }

  /// The time of a removal or of a change of slots, as a file has it. An impossible one says nothing: it is read as 0,
  /// takes nothing away and replaces nothing.
  static func orZero(_ time: Int64) -> Int64 { isPossible(time) ? time : 0 }
}
