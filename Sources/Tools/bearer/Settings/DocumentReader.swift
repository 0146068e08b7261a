internal import ByteCoding
internal import OIDCClient
internal import ConfigurationEngine

/// Reads the whole document.
struct DocumentReader {
  let folder: String
  let reading: (String) throws(SettingsFileError) -> SettingsFile

  struct Document {
    var providers: [IdentityProvider] = []
    var standard: IdentityProvider?
    var uses: [String: ProviderUse] = [:]
  }

  /// The document in `text`, and its faults. With a fault, the document is incomplete.
  func read(_ text: String) -> (Document, FaultList) {
    var faults = FaultList()
    do throws(YAMLDocument.Malformed) {
      let root = try YAMLDocument.parse(text)
      switch root.content {
      case .section(let members): return read(members, at: root.position)
      case .empty: return read([], at: root.position)
      case .scalar, .list: faults.add(root.position, nil, "the file must contain keys, such as providers")
      }
    } catch {
      faults.add(error.position, nil, error.reason)
    }
    return (Document(), faults)
  }

  private func read(_ members: [YAMLDocument.Member], at start: YAMLDocument.Position) -> (Document, FaultList) {
    var top = SectionReader<TopKey>(members, at: start, prefix: "")
    if let version = top.text(.version), version != "1" { top.refuse(.version, "must be 1") }
    var faults = FaultList()
    let sections = providers(of: &top, &faults)
    let ids = sections.map(\.id)
    faults += FallbackRules.faults(of: sections)
    faults += GitHostRule.faults(of: sections)
    let providers = sections.compactMap(\.provider)
    var standard = providers.count == 1 ? providers.first : nil
    if let name = top.text(.standard) {
      standard = providers.first { $0.id == name }
      if !ids.contains(name) {
        let near = Suggestions.nearest(to: name, in: ids).map { " (did you mean \($0)?)" } ?? ""
        top.refuse(.standard, "names no provider of this file\(near)")
      }
    }
    faults += top.faults
    let uses = Dictionary(uniqueKeysWithValues: sections.map { ($0.id, $0.use) })
    return (Document(providers: providers, standard: standard, uses: uses), faults)
  }

  private func providers(of top: inout SectionReader<TopKey>, _ faults: inout FaultList) -> [ProviderSection] {
    guard let members = top.section(.providers) else {
      if !top.has(.providers) { top.refuse(.providers, "is required: there is no provider") }
      return []
    }
    if members.isEmpty { top.refuse(.providers, "must contain a provider") }
    var sections: [ProviderSection] = []
    for member in members {
      guard let id = member.key else {
        faults.add(member.position, "providers", "the identifier of a provider must be a word")
        continue
      }
      if let first = sections.first(where: { $0.id == id }) {
        faults.add(member.position, "providers.\(id)", "set twice, first in line \(first.position.line)")
        continue
      }
      guard case .section(let keys) = member.value.content else {
        faults.add(member.position, "providers.\(id)", "must contain keys, such as issuer and client_id")
        sections.append(ProviderSection(id: id, position: member.position, provider: nil, fallbacks: []))
        continue
      }
      var reader = ProviderReader(id: id, keys, at: member.position, folder: folder, reading: reading)
      sections.append(reader.section())
      faults += reader.faults
    }
    return sections
  }
}
