/// The path of a setting, with the indices of list elements, and the names of entries that the file names.
public struct SettingPath: Sendable, Hashable {
  /// The steps from the root: `["routes", "[]", "upstream"]`, `["providers", "*", "issuer"]`.
  public private(set) var steps: [String]
  /// One index for each `[]`, in order.
  public private(set) var indices: [Int]
  /// One name for each `*`, in order. A name may contain any character.
  public private(set) var names: [String]

  public static let root = SettingPath(steps: [], indices: [])

  private init(steps: [String], indices: [Int], names: [String] = []) {
    self.steps = steps
    self.indices = indices
    self.names = names
  }

  /// Fills in the `[]` and `*` of `pattern`; missing indices are 0, and missing names are `*`.
  public init(pattern: String, indices: [Int] = [], names: [String] = []) {
    steps = pattern.split(separator: ".").flatMap { step in
      step.hasSuffix("[]") ? [String(step.dropLast(2)), "[]"] : [String(step)]
    }
    let needed = steps.count { $0 == "[]" }
    self.indices = Array((indices + Array(repeating: 0, count: needed)).prefix(needed))
    let named = steps.count { $0 == "*" }
    self.names = Array((names + Array(repeating: "*", count: named)).prefix(named))
  }

  /// Parses a path such as `routes[0].upstream`. Returns `nil` if `text` is not a path.
  public init?(text: String) {
    self = .root
    for part in text.split(separator: ".", omittingEmptySubsequences: false) {
      guard let name = part.split(separator: "[", omittingEmptySubsequences: false).first, !name.isEmpty, name != "*"
      else {
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
  public subscript(key: String) -> SettingPath { SettingPath(steps: steps + [key], indices: indices, names: names) }
  /// The path of an element of this list.
  public subscript(index: Int) -> SettingPath {
    SettingPath(steps: steps + ["[]"], indices: indices + [index], names: names)
  }
  /// The path of an entry of this section, whose names the file chooses.
  public subscript(name name: String) -> SettingPath {
    SettingPath(steps: steps + ["*"], indices: indices, names: names + [name])
  }

  /// The path without its last step. The root's parent is the root.
  public var parent: SettingPath {
    guard let last = steps.last else { return self }
    return SettingPath(
      steps: steps.dropLast(), indices: last == "[]" ? indices.dropLast() : indices,
      names: last == "*" ? names.dropLast() : names)
  }

  /// The path of the outermost list element that this path leads through; `nil` if there is none.
  var element: SettingPath? {
    steps.firstIndex(of: "[]").map { SettingPath(steps: Array(steps[...$0]), indices: Array(indices.prefix(1))) }
  }

  /// Whether this is `section`, or a path below it.
  public func isPart(of section: SettingPath) -> Bool {
    steps.starts(with: section.steps) && indices.starts(with: section.indices) && names.starts(with: section.names)
  }

  /// The last step; empty for the root.
  public var last: String { steps.last ?? "" }

  /// The path as in the settings table: `routes[].upstream`, `providers.*.issuer`.
  public var pattern: String { joined(indices.map { _ in "[]" }, names.map { _ in "*" }) }

  /// The path with its indices and names: `routes[0].upstream`, `providers.work.issuer`.
  public var text: String { joined(indices.map { "[\($0)]" }, names) }

  private func joined(_ elements: [String], _ names: [String]) -> String {
    var text = ""
    var (elements, names) = (elements[...], names[...])
    for step in steps {
      if step == "[]" {
        text += elements.popFirst() ?? step
      } else {
        let word = step == "*" ? names.popFirst() ?? step : step
        text += text.isEmpty ? word : ".\(word)"
      }
    }
    return text
  }
}
