internal import ByteCoding
internal import ConfigurationEngine
internal import OIDCClient

/// The rules that need all providers.
extension SettingsBuilder {
  /// The elements of a provider's list that have no fault.
  func elements<Value>(_ key: Key<Value>, of id: String) -> [(path: SettingPath, value: Value)] {
    let list = SettingPath(pattern: key.definition.pattern, names: [id]).parent
    return entries.indices(of: list).compactMap { index in value(key, at: list[index]).map { (list[index], $0) } }
  }

  /// Refuses the name of a provider that the file does not have.
  mutating func refuseUnknown(_ id: String, at path: SettingPath, among ids: [String]) {
    guard !ids.contains(id) else { return }
    refuse(path, "names no provider of this file", suggestion: Suggestions.nearest(to: id, in: ids))
  }

  /// Each host belongs to one provider, so that Git gets no token of another one.
  mutating func judgeGitHosts(of ids: [String]) {
    var owners: [String: String] = [:]
    for id in ids {
      for (path, host) in elements(Keys.gitHosts, of: id) {
        guard let owner = owners.updateValue(id, forKey: host) else { continue }
        refuse(path, owner == id ? "is listed twice" : "is a host of \(owner), too")
      }
    }
  }

  /// A fallback exists and has the same grant, and no chain of fallbacks leads back to its beginning.
  mutating func judgeFallbacks(of ids: [String]) {
    var done: Set<String> = []
    for id in ids { followFallbacks(of: id, from: [], &done, among: ids) }
  }

  /// Whose tokens the client of a provider asks for; `nil` if that is faulty.
  private func grant(of id: String) -> ProviderVariations.AccountGrant? {
    value(Keys.grant, at: SettingPath(pattern: Keys.grant.definition.pattern, names: [id]))
  }

  /// Follows the fallbacks of `id`, which `path` leads to. Visits each provider once, so each cycle has one fault.
  private mutating func followFallbacks(
    of id: String, from path: [String], _ done: inout Set<String>, among ids: [String]
  ) {
    guard done.insert(id).inserted else { return }
    let path = path + [id]
    for (place, fallback) in elements(Keys.fallbacks, of: id) {
      refuseUnknown(fallback, at: place, among: ids)
      if ids.contains(fallback), let own = grant(of: id), let other = grant(of: fallback), own != other {
        refuse(
          place, "has the grant \(other.rawValue): a person and a machine account are no fallbacks of one another")
      }
      if fallback != id, let start = path.firstIndex(of: fallback) {
        // A provider that names itself breaks a rule of its own.
        refuse(place, "leads back: \((path[start...] + [fallback]).joined(separator: " → "))")
      } else {
        followFallbacks(of: fallback, from: path, &done, among: ids)
      }
    }
  }
}
