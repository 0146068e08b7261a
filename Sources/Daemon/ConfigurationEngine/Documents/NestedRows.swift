/// Rows of a document in sections, each with the steps of its path below the current section.
enum NestedRows {
  /// Groups `rows` by their first step and removes it. Groups keep the order of their first row.
  static func groups<Row>(
    _ rows: [Row], by steps: WritableKeyPath<Row, ArraySlice<String>>
  ) -> [(name: String, rows: [Row])] {
    var groups: [(name: String, rows: [Row])] = []
    for var row in rows {
      guard let name = row[keyPath: steps].popFirst() else { continue }
      if let index = groups.firstIndex(where: { $0.name == name }) {
        groups[index].rows.append(row)
      } else {
        groups.append((name, [row]))
      }
    }
    return groups
  }
}
