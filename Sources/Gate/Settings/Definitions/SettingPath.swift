/// The path of a setting, with the indices of the lists on the way.
struct SettingPath: Sendable, Hashable {
  /// The steps from the root: `["routes", "[]", "upstream"]`.
  private(set) var steps: [String]
  /// One index for each `[]`, in order.
  private(set) var indices: [Int]

  static let root = SettingPath(steps: [], indices: [])

  private init(steps: [String], indices: [Int]) {
    self.steps = steps
    self.indices = indices
  }

  /// The path of `pattern` with its `[]` filled in; indices that are not given count as 0.
  init(pattern: String, indices: [Int]) {
    steps = pattern.split(separator: ".").flatMap { step in
      step.hasSuffix("[]") ? [String(step.dropLast(2)), "[]"] : [String(step)]
    }
    let needed = steps.count { $0 == "[]" }
    self.indices = Array((indices + Array(repeating: 0, count: needed)).prefix(needed))
  }

  /// The path that `text` writes, as `routes[0].upstream`; `nil` if it is not one.
  init?(text: String) {
    self = .root
    for part in text.split(separator: ".", omittingEmptySubsequences: false) {
      guard let name = part.split(separator: "[", omittingEmptySubsequences: false).first, !name.isEmpty else {
        return nil
      }
      self = self[String(name)]
      if name.count == part.count { continue }
      guard part.hasSuffix("]"), let index = Digits.value(of: part.dropFirst(name.count + 1).dropLast()) else {
        return nil
      }
      self = self[index]
    }
  }

  subscript(key: String) -> SettingPath { SettingPath(steps: steps + [key], indices: indices) }
  subscript(index: Int) -> SettingPath { SettingPath(steps: steps + ["[]"], indices: indices + [index]) }

  /// The path without its last step; the root's is the root.
  var parent: SettingPath {
    guard let last = steps.last else { return self }
    return SettingPath(steps: steps.dropLast(), indices: last == "[]" ? indices.dropLast() : indices)
  }

  var last: String { steps.last ?? "" }

  /// `routes[].upstream`, as the table of settings writes it.
  var pattern: String { joined { _ in "[]" } }

  /// `routes[0].upstream`, as a person reads it.
  var text: String { joined { "[\(indices[$0])]" } }

  private func joined(element: (Int) -> String) -> String {
    var text = ""
    var list = 0
    for step in steps {
      if step == "[]" {
        text += element(list)
        list += 1
      } else {
        text += text.isEmpty ? step : ".\(step)"
      }
    }
    return text
  }
}
