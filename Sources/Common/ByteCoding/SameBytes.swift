extension StringProtocol {
  /// Whether this text and `other` have the same bytes in UTF-8.
  ///
  /// `==` compares by canonical equivalence. It normalizes both texts, at a cost that grows with the square of the
  /// number of combining marks in a row, and two texts of different bytes can be equal by it. So texts from outside are
  /// compared by this function: its cost is at most that of the shorter text.
  @inlinable
  public func hasSameBytes(as other: some StringProtocol) -> Bool {
    utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
  }

  /// The parts of this text between the bytes `separator`, a character of ASCII.
  ///
  /// `split(separator:)` compares characters: a combining mark after a separator hides it, and the comparison costs as
  /// much as that of `==`. So texts from outside are split by this function.
  @inlinable
  public func split(
    atBytes separator: UInt8, maxSplits: Int = .max, omittingEmptySubsequences: Bool = false
  ) -> [SubSequence] {
    let parts = utf8.split(
      separator: separator, maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences)
    return parts.map { self[$0.startIndex..<$0.endIndex] }
  }
}
