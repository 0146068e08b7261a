internal import ByteCoding

extension Timestamp {
  /// Whether only a clock that was far ahead can have given a key this date, because it is more than 8 days after `now`:
  /// a new identity signing key signs at most 7 days after it was made, and a clock that is ahead by less delays a
  /// rotation by no more than that.
  ///
  /// Such a key is not rotated before its time has come. A gate must not rotate it by itself: it may be the one whose
  /// clock is behind, and two gates would replace each other's keys again and again.
  func isOfClockAhead(at now: Timestamp) -> Bool { since(now) > .seconds(8 * 86_400) }
}
