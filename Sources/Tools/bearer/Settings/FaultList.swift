internal import ConfigurationEngine

/// The faults found so far.
struct FaultList {
  struct Fault {
    let position: YAMLDocument.Position
    let key: String?
    let reason: String
  }

  private(set) var faults: [Fault] = []
  var isEmpty: Bool { faults.isEmpty }

  mutating func add(_ position: YAMLDocument.Position, _ key: String?, _ reason: String) {
    faults.append(Fault(position: position, key: key, reason: reason))
  }

  static func += (list: inout FaultList, other: FaultList) { list.faults += other.faults }

  /// The faults in the order of the text. Faults at one place keep their order.
  func sorted(in file: String) -> [BearerSettingsError] {
    let order = faults.indices.sorted { first, second in
      let (one, other) = (faults[first].position, faults[second].position)
      return (one.line, one.column, first) < (other.line, other.column, second)
    }
    return order.map { index in
      let fault = faults[index]
      return BearerSettingsError(
        file: file, line: fault.position.line, column: fault.position.column, key: fault.key, reason: fault.reason)
    }
  }
}
