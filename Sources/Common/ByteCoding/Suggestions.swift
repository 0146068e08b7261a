/// Finds the word that was probably meant.
public enum Suggestions {
  /// The longest word that is compared, in bytes: a comparison takes time with the product of two lengths.
  static let longest = 200

  /// The candidate with the fewest typing errors from `word`, if that is at most one in three letters. Nothing is near a
  /// word, and no candidate is near, that has more than 200 bytes.
  public static func nearest(to word: some StringProtocol, in candidates: some Sequence<String>) -> String? {
    guard word.utf8.count <= longest else { return nil }
    let allowed = max(1, min(3, word.count / 3))
    let measured = candidates.filter { $0.utf8.count <= longest }
      .map { (candidate: $0, distance: distance(word.lowercased(), $0.lowercased())) }
    guard let best = measured.min(by: { $0.distance < $1.distance }), best.distance <= allowed else { return nil }
    return best.candidate
  }

  /// How many letters have to be put in, left out, replaced or swapped with their neighbour to turn one word into the
  /// other (the restricted Damerau-Levenshtein distance).
  public static func distance(_ first: String, _ second: String) -> Int {
    let (first, second) = (Array(first), Array(second))
    var beforeLast: [Int] = []
    var last = Array(0...second.count)
    for row in first.indices {
      var current = [row + 1]
      for column in second.indices {
        let same = first[row] == second[column]
        var least = min(last[column + 1] + 1, current[column] + 1, last[column] + (same ? 0 : 1))
        if row > 0, column > 0, first[row] == second[column - 1], first[row - 1] == second[column] {
          least = min(least, beforeLast[column - 1] + 1)
        }
        current.append(least)
      }
      (beforeLast, last) = (last, current)
    }
    return last[second.count]
  }
}
