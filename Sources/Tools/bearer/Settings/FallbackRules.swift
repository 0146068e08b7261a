internal import ByteCoding
internal import OIDCClient
internal import ConfigurationEngine

/// A provider of the file, as far as it could be read.
struct ProviderSection {
  /// A provider that another one names.
  struct Fallback {
    let id: String
    let index: Int
    let position: YAMLDocument.Position
  }

  let id: String
  let position: YAMLDocument.Position
  /// `nil` if the section has a fault.
  let provider: IdentityProvider?
  let fallbacks: [Fallback]
  var use = ProviderUse()
  /// The places of the hosts of `use`.
  var hostPositions: [YAMLDocument.Position] = []
}

/// The rule that one provider has each host, so that Git gets no token of another one.
enum GitHostRule {
  static func faults(of sections: [ProviderSection]) -> FaultList {
    var faults = FaultList()
    var owners: [String: String] = [:]
    for section in sections {
      for (index, (host, position)) in zip(section.use.gitHosts, section.hostPositions).enumerated() {
        if let owner = owners.updateValue(section.id, forKey: host) {
          let reason = owner == section.id ? "is listed twice" : "is a host of \(owner), too"
          faults.add(position, "providers.\(section.id).git_hosts[\(index)]", reason)
        }
      }
    }
    return faults
  }
}

/// The rules that need all providers: a fallback exists, and no chain of fallbacks leads back to its beginning.
struct FallbackRules {
  private let sections: [String: ProviderSection]
  private let ids: [String]
  private var faults = FaultList()
  private var done: Set<String> = []

  static func faults(of sections: [ProviderSection]) -> FaultList {
    var rules = FallbackRules(sections)
    for id in rules.ids { rules.visit(id, from: []) }
    return rules.faults
  }

  private init(_ sections: [ProviderSection]) {
    ids = sections.map(\.id)
    self.sections = Dictionary(uniqueKeysWithValues: sections.map { ($0.id, $0) })
  }

  /// Follows the fallbacks of `id`, which `path` leads to. Visits each provider once, so each cycle has one fault.
  private mutating func visit(_ id: String, from path: [String]) {
    guard let section = sections[id], done.insert(id).inserted else { return }
    let path = path + [id]
    for fallback in section.fallbacks {
      func refuse(_ reason: String) {
        faults.add(fallback.position, "providers.\(id).fallbacks[\(fallback.index)]", reason)
      }
      if sections[fallback.id] == nil {
        let near = Suggestions.nearest(to: fallback.id, in: ids).map { " (did you mean \($0)?)" } ?? ""
        refuse("names no provider of this file\(near)")
      } else if fallback.id != id, let start = path.firstIndex(of: fallback.id) {
        // A provider that names itself breaks a rule of its own.
        refuse("leads back: \((path[start...] + [fallback.id]).joined(separator: " → "))")
      } else {
        visit(fallback.id, from: path)
      }
    }
  }
}
