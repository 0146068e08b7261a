internal import ConsoleServing
internal import ByteCoding

/// Parts that several pages have.
enum Parts {
  /// Returns a link to the page of a key.
  static func key(_ hash: String?) -> ConsoleTable.Cell {
    guard let hash else { return ConsoleTable.Cell(nil as String?) }
    return ConsoleTable.Cell(
      hash: hash,
      #"<a href="/keys/\#(hash)"><code class="nowrap" title="\#(hash)">\#(String(hash.prefix(12)))</code></a>"#)
  }
}
