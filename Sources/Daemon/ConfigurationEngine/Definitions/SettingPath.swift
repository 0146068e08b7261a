/// The path of a setting, with list indices.
public struct SettingPath: Sendable, Hashable {
  /// The steps from the root: `["routes", "[]", "upstream"]`.
  public private(set) var steps: [String]
  /// One index for each `[]`, in order.
  public private(set) var indices: [Int]

  public static let root = SettingPath(steps: [], indices: [])

  private init(steps: [String], indices: [Int]) {
    self.steps = steps
    self.indices = indices
  }

  /// Fills in the `[]` of `pattern`; missing indices are 0.
  public init(pattern: String, indices: [Int]) {
    steps = pattern.split(separator: ".").flatMap { step in
      step.hasSuffix("[]") ? [String(step.dropLast(2)), "[]"] : [String(step)]
    }
    let needed = steps.count { $0 == "[]" }
    self.indices = Array((indices + Array(repeating: 0, count: needed)).prefix(needed))
  }

  /// Parses a path such as `routes[0].upstream`. Returns `nil` if `text` is not a path.
  public init?(text: String) {
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

  /// The path of the member `key` of this section.
  public subscript(key: String) -> SettingPath { SettingPath(steps: steps + [key], indices: indices) }
  /// The path of an element of this list.
  public subscript(index: Int) -> SettingPath { SettingPath(steps: steps + ["[]"], indices: indices + [index]) }

  /// The path without its last step. The root's parent is the root.
  public var parent: SettingPath {
    guard let last = steps.last else { return self }
    return SettingPath(steps: steps.dropLast(), indices: last == "[]" ? indices.dropLast() : indices)
  }

  /// The path of the outermost list element that this path leads through; `nil` if there is none.
  var element: SettingPath? {
    steps.firstIndex(of: "[]").map { SettingPath(steps: Array(steps[...$0]), indices: Array(indices.prefix(1))) }
  }

  /// Whether this is `section`, or a path below it.
  public func isPart(of section: SettingPath) -> Bool {
    steps.starts(with: section.steps) && indices.starts(with: section.indices)
  }

  /// The last step; empty for the root.
  public var last: String { steps.last ?? "" }

  /// The path as in the settings table: `routes[].upstream`.
  public var pattern: String { joined { _ in "[]" } }

  /// The path with its indices: `routes[0].upstream`.
  public var text: String { joined { "[\(indices[$0])]" } }

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
